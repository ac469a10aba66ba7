package scenarios

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// meant reports whether a finding is about a violation that the scenario makes the editor commit on purpose.
func (r *run) meant(f rules.Finding) bool {
	return f.Side == rules.OfClient &&
		(r.state.allExcused || slices.ContainsFunc(f.Entries, func(seq int) bool { return r.state.excused[seq] }))
}

// finding converts a finding of a rule to a finding of the results.
func (r *run) finding(f rules.Finding) results.Finding {
	out := results.FindingOf(f)
	out.Point, out.Message, out.Detail = f.Point, r.Plain(f.Message), r.Plain(f.Detail)
	if f.Side == rules.OfClient {
		out.Class = results.Error
	}
	if len(f.Entries) > 0 {
		out.Tail = r.around(f.Entries)
	}
	return out
}

func (r *run) Plain(s string) string {
	return strings.NewReplacer(r.box.Work, "$WORK", r.box.Home, "$HOME", r.box.Root, "$RUN").Replace(s)
}

// around returns the entries that a finding names and the frames around the last of them, one line each.
func (r *run) around(seqs []int) []string {
	last := slices.Max(seqs)
	want := lists.Set(seqs)
	var lines []string
	for _, seq := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(seqs), last-2, last-1, last+1)))) {
		e := r.t.At(seq)
		if want[e.Seq] || e.Frame() {
			mark := "  "
			if want[e.Seq] {
				mark = "> "
			}
			lines = append(lines, r.short(fmt.Sprintf("%s#%d %s", mark, e.Seq, r.Line(e))))
		}
	}
	if len(lines) > 8 {
		lines = append(lines[:2], append([]string{"  …"}, lines[len(lines)-5:]...)...)
	}
	return lines
}

// leftovers returns findings that no frame shows: why the agent was killed, and how its processes ended.
func (r *run) leftovers() []results.Finding {
	var out []results.Finding
	if why := r.flood.why.Load(); why != nil {
		out = append(out, results.Finding{Rule: "FLOOD", Class: results.Fail, Message: "The agent was killed: " + *why + "."})
	}
	// exits adds a finding about how the agent's processes ended.
	exits := func(rule string, class results.Verdict, message, detail string) {
		out = append(out, results.Finding{Rule: rule, Class: class, Requirements: r.protocol().ExitRequirements,
			Message: message, Detail: detail})
	}
	if k := r.state.keeper; k != "" {
		exits("EXIT-KEEPER", results.Fail, fmt.Sprintf("The keeper, which watches the agent's processes, %s. "+
			"Only the agent or the system can have done that.", k), "")
	}
	for _, p := range r.state.survivors {
		class, what := results.Warn, "A process outlived the agent and was killed"
		if p.Left {
			class, what = results.Fail, "A process of the agent could not be killed and still runs"
		}
		exits("EXIT-LEFTOVER", class, what+": "+r.Plain(p.Command), fmt.Sprintf("pid %d, parent %d", p.PID, p.Parent))
	}
	steps := r.state.shutdown.Steps
	served := r.engine.Profile.URL != "" // a server outlives its connections
	if !served && slices.Contains(steps, "SIGTERM") && !r.state.killed {
		exits("EXIT-EOF", results.Lint, fmt.Sprintf("The agent did not end when its input was closed; it took %s.",
			strings.Join(steps[1:], ", then ")), "")
	}
	return out
}

// prompts returns the Seqs of all prompts of the run.
func (r *run) prompts() []int { return seqsOf(r.t.All(), r.protocol().Prompts) }

// seqsOf returns the Seqs of the entries for which fits is true. It returns only Seqs, because all entries may not
// fit into memory.
func seqsOf(entries iter.Seq[transcript.Entry], fits func(transcript.Entry) bool) (seqs []int) {
	for e := range entries {
		if fits(e) {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

// markTurns sets InTurn of the findings that are about a turn, and Reached if the agent reached the model server. It
// sets Unreached if the agent did not reach the server although the script sent a prompt and had replies.
func (r *run) markTurns(res *results.Result) {
	prompts := r.prompts()
	wire, _ := r.model.Learned()
	// An agent has reached the server even if the server refused its request because of its content or its key.
	res.Reached = wire != "" || lists.Any(r.t.All(), func(e transcript.Entry) bool {
		return e.Kind == transcript.ModelRequest && e.JSON().Get("tools").Exists()
	})
	res.Unreached = !res.Reached && r.scenario.Model != nil && len(prompts) > 0
	for i, f := range res.Findings {
		res.Findings[i].InTurn = slices.ContainsFunc(f.Entries, func(seq int) bool { return slices.Contains(prompts, seq) })
	}
}

// missedInTurn reports whether the check has a miss after the script's first prompt.
func (r *run) missedInTurn(c *checkState) bool {
	prompts := r.prompts()
	return len(prompts) > 0 && slices.ContainsFunc(c.misses, func(m *Miss) bool { return m.at >= prompts[0] })
}
