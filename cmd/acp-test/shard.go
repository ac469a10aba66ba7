package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios/results"
)

// shard reads --shard I/N, or else what the CI system says of parallel jobs;
// nil runs everything. from names where it was found.
func (h *host) shard(flag string) (s *results.Shard, from string, err error) {
	if flag != "" {
		var i, n int
		if k, err := fmt.Sscanf(flag+"\n", "%d/%d\n", &i, &n); k != 2 || err != nil || i < 1 || i > n {
			return nil, "", fmt.Errorf("--shard %q: I/N is expected, with I from 1 to N", flag)
		}
		if n == 1 {
			return nil, "", nil
		}
		return &results.Shard{Index: i, Of: n}, "--shard", nil
	}
	for _, ci := range []struct {
		index, total string
		first        int // the index of the first job
	}{
		{"CI_NODE_INDEX", "CI_NODE_TOTAL", 1},                         // GitLab
		{"CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0},                 // CircleCI
		{"BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0}, // Buildkite
		{"SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE", 1},   // Azure Pipelines
		{"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", 0},                // Kubernetes, as ci/ sets it
	} {
		index, ok1 := h.getenv(ci.index)
		total, ok2 := h.getenv(ci.total)
		if !ok1 || !ok2 {
			continue
		}
		i, err1 := strconv.Atoi(index)
		n, err2 := strconv.Atoi(total)
		i += 1 - ci.first
		if err1 != nil || err2 != nil || i < 1 || i > n {
			return nil, "", fmt.Errorf("%s=%q and %s=%q do not say which part to run; --shard 1/1 runs all", ci.index, index,
				ci.total, total)
		}
		if n > 1 {
			return &results.Shard{Index: i, Of: n}, ci.index, nil
		}
	}
	return nil, "", nil
}

// readDurations reads how long scenarios take: "ID SECONDS" a line, as the
// report format durations writes it.
func readDurations(file string) (map[string]time.Duration, error) {
	if file == "" {
		return nil, nil
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--durations: %w", err)
	}
	found := map[string]time.Duration{}
	lines := bufio.NewScanner(bytes.NewReader(src))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		// The id may hold spaces, the seconds cannot.
		at := strings.LastIndexByte(line, ' ')
		seconds, err := strconv.ParseFloat(line[at+1:], 64)
		if at < 0 || err != nil || seconds < 0 {
			return nil, fmt.Errorf("%s:%d: the id of a scenario and its seconds are expected, such as: cancel/idle 0.42", file,
				n)
		}
		found[strings.TrimSpace(line[:at])] = time.Duration(seconds * float64(time.Second))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--durations: %s: %w", file, err)
	}
	return found, nil
}
