package reports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/wire"
)

// artifactLimit is the maximum number of bytes of a file that the page shows. The run's folder contains the complete
// file.
const artifactLimit = 256 << 10

// writeHTML writes the inspector's page with the run's data. The page contains the data of each scenario in
// compressed form and unpacks it only when the user opens the scenario. Therefore the page opens quickly even for a
// long run.
func writeHTML(p inspector.Protocol, run results.Run, w io.Writer) error {
	run.Version = Version
	run.Results = slices.Clone(run.Results)
	for i := range run.Results {
		run.Results[i].Support, run.Results[i].Evidence = nil, nil // the page does not use them
	}
	data, err := json.Marshal(run)
	if err != nil {
		return err
	}
	title := run.Agent.String()
	return inspector.WritePage(w, title+": "+run.Verdict.String(), data, p, func(yield func(string) bool) {
		for _, packed := range packAll(p, run) {
			if !yield(<-packed) {
				return
			}
		}
	})
}

// packAll packs the data of all scenarios, using all processors. It returns one channel per result, in the order of
// the results.
func packAll(p inspector.Protocol, run results.Run) []chan string {
	packed := make([]chan string, len(run.Results))
	for i := range packed {
		packed[i] = make(chan string, 1)
	}
	if len(packed) == 0 {
		return nil
	}
	next := make(chan int, len(packed))
	for i := range packed {
		next <- i
	}
	close(next)
	for range min(runtime.GOMAXPROCS(0), len(packed)) {
		go func() {
			for i := range next {
				packed[i] <- pack(p, run.Out, run.Results[i])
			}
		}()
	}
	return packed
}

// pack reads the files of a result and compresses them, entry by entry. If a file cannot be read, the page shows a
// message instead.
func pack(p inspector.Protocol, out string, r results.Result) string {
	var b bytes.Buffer
	z := inspector.Packed(&b)
	// Errors are ignored below: writing to memory never fails, and every field can be encoded.
	var rest struct { // data of a scenario, except its entries
		Rendered  string `json:"rendered,omitempty"`
		Before    string `json:"before,omitempty"`
		Workspace string `json:"workspace,omitempty"`
		Problem   string `json:"problem,omitempty"`
	}
	_, _ = io.WriteString(z, "{")
	root, err := confined.Open(orDot(out))
	if err == nil {
		defer root.Close()
		rest.Rendered, rest.Before = readSome(root, r.Artifacts["rendered"]), readSome(root, r.Artifacts["before"])
		rest.Workspace = readSome(root, r.Artifacts["workspace"])
		err = packEntries(z, p, root, r.Artifacts["transcript"])
	} else {
		err = fmt.Errorf("the files of this run cannot be read: %w", err)
		_, _ = io.WriteString(z, `"rows":[],"names":[]`)
	}
	if err != nil {
		rest.Problem = err.Error()
	}
	more, _ := json.Marshal(rest)
	if len(more) > len("{}") {
		_, _ = io.WriteString(z, ",")
	}
	_, _ = z.Write(more[1:])
	_ = z.Close()
	return b.String()
}

// packEntries packs the entries of a transcript. If the transcript cannot be opened, it packs an empty list and
// returns an error.
func packEntries(w io.Writer, p inspector.Protocol, root *confined.Root, name string) error {
	var file io.ReadCloser = io.NopCloser(strings.NewReader(`{"acp-test":1}`))
	var missing error
	if name == "" {
		missing = errors.New("the transcript cannot be read: the run kept none")
	} else if opened, err := root.Open(filepath.FromSlash(name)); err != nil {
		missing = fmt.Errorf("the transcript cannot be read: %w", err)
	} else {
		file = opened
	}
	defer file.Close()
	return cmp.Or(missing, inspector.Pack(w, file, inspector.Protocol{Text: p.Text, Kind: p.Kind}))
}

func orDot(dir string) string {
	return cmp.Or(dir, ".")
}

func readSome(root *confined.Root, name string) string {
	if name == "" {
		return ""
	}
	file, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return "(cannot be read: " + err.Error() + ")"
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, artifactLimit+1))
	if err != nil {
		return "(cannot be read: " + err.Error() + ")"
	}
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\ufffd"))
	}
	return wire.Clip(string(data), artifactLimit)
}
