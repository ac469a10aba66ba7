package verdict

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
)

// Merge joins the parts into which --shard divided a run, in any order. The result equals that of a run that is not
// divided, except for times: it starts with the earliest part and takes as long as the longest part. Artifacts keep
// their names within the parts; Out is empty. The error joins all reasons why the parts do not form one complete run.
func Merge(set *rules.Set, parts []results.Run) (results.Run, error) {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b results.Run) int { return cmp.Compare(part(&a), part(&b)) })
	if err := alike(parts); err != nil {
		return results.Run{}, err
	}
	first := parts[0]
	command := withFlags(first.Command, func(ours string) string { return shardFlag().ReplaceAllString(ours, "") })
	whole := results.Run{Version: first.Version, Tool: first.Tool, Command: command, Agent: first.Agent,
		Protocol: first.Protocol,
		Seed:     first.Seed, Started: first.Started, Strict: first.Strict}
	whole.Agent.Name, whole.Agent.Version = "", ""
	for _, p := range parts {
		if p.Started.Before(whole.Started) {
			whole.Started = p.Started
		}
		whole.Duration = max(whole.Duration, p.Duration)
		whole.Results = append(whole.Results, p.Results...)
	}
	if first.Sweep != nil {
		mergeSweeps(&whole, parts)
		exit, verdict := whole.Exit, whole.Verdict
		Sum(&whole)
		whole.Exit, whole.Verdict = exit, verdict
		return whole, nil
	}
	order := map[string]int{}
	for i, id := range first.Shard.List {
		order[id] = i
	}
	slices.SortStableFunc(whole.Results, func(a, b results.Result) int {
		return cmp.Or(cmp.Compare(a.Repeat, b.Repeat), cmp.Compare(order[a.ID], order[b.ID]))
	})
	Sum(&whole)
	whole.Stale = append(slices.Clone(first.Shard.Unclaimed), Stale(&whole, first.Shard.Expected, time.Now())...)
	Finish(&whole)
	if first.Conformance != nil {
		Conform(set, &whole)
	}
	return whole, nil
}

func part(run *results.Run) int {
	if run.Shard == nil {
		return 0
	}
	return run.Shard.Index
}

// alike returns an error that joins the reasons why runs are not the parts of one run, or nil.
func alike(parts []results.Run) error {
	if len(parts) == 0 {
		return errors.New("there is nothing to merge")
	}
	if err := sound(parts); err != nil {
		return err
	}
	first := parts[0]
	var errs []error
	for i := 1; i <= first.Shard.Of; i++ {
		if !slices.ContainsFunc(parts, func(p results.Run) bool { return part(&p) == i }) {
			errs = append(errs, fmt.Errorf("part %d of %d is missing", i, first.Shard.Of))
		}
	}
	for _, p := range parts {
		errs = append(errs, differs(&p, &first)...)
	}
	if len(errs) == 0 && first.Sweep == nil {
		errs = append(errs, once(parts)...)
	}
	return errors.Join(errs...)
}

// sound returns an error for each run that is not a part, is given twice, or was changed by hand.
func sound(parts []results.Run) error {
	var errs []error
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	have := map[int]bool{}
	for _, p := range parts {
		switch s := p.Shard; {
		case s == nil && len(p.Notes) > 0 && len(p.Results) == 0:
			say("one of the runs did not begin: %s", p.Notes[0])
		case s == nil:
			say("the run started at %s is complete: it was not made with --shard", p.Started.Format(time.RFC3339))
		case have[s.Index]:
			say("part %d is given twice", s.Index)
		case s.Hash != results.HashOf(s.List):
			say("part %d has been changed: its list of scenarios does not match its hash", s.Index)
		}
		have[part(&p)] = true
	}
	return errors.Join(errs...)
}

// differs returns the reasons why p and first are not parts of the same run.
func differs(p, first *results.Run) (errs []error) {
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if p.Shard.Index < 1 || p.Shard.Index > first.Shard.Of {
		say("part %d of %d cannot be", p.Shard.Index, first.Shard.Of)
	}
	if p.Interrupted {
		say("part %d was interrupted", p.Shard.Index)
	}
	for _, x := range []struct{ what, got, want string }{
		{"number of parts", fmt.Sprint(p.Shard.Of), fmt.Sprint(first.Shard.Of)},
		{"list of scenarios", p.Shard.Hash, first.Shard.Hash},
		{"version of acp-test", p.Tool, first.Tool},
		{"agent", p.Agent.Profile, first.Agent.Profile},
		{"agent's command", strings.Join(p.Agent.Command, " "), strings.Join(first.Agent.Command, " ")},
		{"protocol", p.Protocol, first.Protocol},
		{"seed", fmt.Sprint(p.Seed), fmt.Sprint(first.Seed)},
		{"strictness", fmt.Sprint(p.Strict), fmt.Sprint(first.Strict)},
		{"kind of run", kind(p), kind(first)},
		{"known failures", fmt.Sprint(p.Shard.Expected), fmt.Sprint(first.Shard.Expected)},
		{"goldens", fmt.Sprint(p.Shard.Unclaimed), fmt.Sprint(first.Shard.Unclaimed)},
	} {
		if x.got != x.want {
			say("part %d has another %s than part %d: %s, not %s", p.Shard.Index, x.what, first.Shard.Index, x.got, x.want)
		}
	}
	if a, b := p.Agent.Version, first.Agent.Version; a != "" && b != "" && a != b {
		say("part %d tested version %s of the agent, part %d version %s", p.Shard.Index, a, first.Shard.Index, b)
	}
	return errs
}

func kind(run *results.Run) string {
	if run.Conformance != nil {
		return "conformance"
	}
	if run.Sweep != nil {
		return "sweep"
	}
	return "run"
}

// once returns an error for each scenario of the list that the parts do not contain exactly once per repeat, and for
// each scenario that is not in the list.
func once(parts []results.Run) []error {
	type place struct {
		id     string
		repeat int
	}
	var errs []error
	by := map[place]int{}
	ran := map[string]bool{}
	list := parts[0].Shard.List
	for _, p := range parts {
		for _, r := range p.Results {
			at := place{r.ID, r.Repeat}
			switch other, twice := by[at]; {
			case !slices.Contains(list, r.ID):
				errs = append(errs, fmt.Errorf("part %d ran %s, which is not in the list of scenarios", p.Shard.Index, r.ID))
			case twice:
				errs = append(errs, fmt.Errorf("%s ran in part %d and in part %d; did both get the same --durations?", r.ID,
					other, p.Shard.Index))
			}
			by[at], ran[r.ID] = p.Shard.Index, true
		}
	}
	for _, id := range list {
		if !ran[id] {
			errs = append(errs, fmt.Errorf("%s ran in none of the parts", id))
		}
	}
	return errs
}

var shardFlag = lazy.Regexp(` --shard[ =]\S+`)

// withFlags applies change to the part of a command line before " -- ". The agent's command after it stays unchanged.
func withFlags(command string, change func(ours string) string) string {
	ours, agent, ok := strings.Cut(command, " -- ")
	if ok {
		return change(ours) + " -- " + agent
	}
	return change(ours)
}
