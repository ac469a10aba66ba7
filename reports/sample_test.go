package reports_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/transcript"
)

// hostile is text as an agent that wants to break reports would send it.
const hostile = "<script>alert(1)</script>]]>\x1b[2J\x00\x07&\"'`|\ufffe ::error::x\r\n# SKIP"

// sample is a run in which everything there is happened once.
func sample() results.Run {
	started := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	result := func(id string, v results.Verdict, ms int) results.Result {
		return results.Result{ID: id, File: "suites/" + id + ".txtar", Title: "About " + id, Verdict: v,
			Started:  started,
			Duration: time.Duration(ms) * time.Millisecond, Frames: 12, Rerun: "acp-test run --run '^" + id + "$'",
			Artifacts: map[string]string{"transcript": id + "/transcript.jsonl"}}
	}
	pass := result("prompt/text", results.Pass, 120)
	pass.Checks = []results.Check{{ID: "prompt/text#ends", Slug: "ends", Line: 4, Title: "The turn ends.",
		Class: results.Fail, Verdict: results.Pass, Requirements: []string{"PROMPT-003"}}}
	pass.Findings = []results.Finding{{Rule: "TOOL-ORDER", Class: results.Warn,
		Message: "A tool call went back from completed to pending.", Entries: []int{4}}}
	pass.Evidence = map[string]int{"TOOL-ORDER": 3}

	fail := result("cancel/mid-stream", results.Fail, 2340)
	fail.Checks = []results.Check{
		{ID: "cancel/mid-stream#cancelled", Slug: "cancelled", Line: 14, Title: "The turn ends as cancelled.",
			Class: results.Fail, Verdict: results.Fail, Requirements: []string{"CANCEL-003"},
			Failure: &transcript.Failure{Where: "suites/cancel/mid-stream.txtar:14",
				Requirement: []string{"CANCEL-003"},
				Statement:   "A cancelled turn ends with the stop reason cancelled. (prompt-turn, Cancellation)",
				Expected:    []string{"the response to session/prompt with cancelled"},
				Observed:    "end_turn, 20 ms after the cancel", Verdict: "unmeetable",
				Reason: "the response came while the model's gate mid was closed", Entries: []int{5, 7},
				Tail:   []string{"5  1.2s  --> session/cancel s-1", "7  1.22s <-- end_turn"},
				Stderr: "warning: aborted\n", Process: "running"}},
		{ID: "cancel/mid-stream#again", Slug: "again", Line: 20, Title: "The session works again.", Class: results.Fail,
			Verdict: results.Fail, NotReached: true},
	}
	fail.Findings = []results.Finding{{Rule: "LATE-CONTENT", Class: results.Fail, Requirements: []string{"CANCEL-005"},
		Citation: "prompt-turn, Cancellation", Session: "s-1", Entries: []int{8},
		Message: "Content came after the response that ended the turn.", Detail: "agent_message_chunk", Count: 2,
		Tail: []string{"7  <-- end_turn", "8  <-- agent_message_chunk \"x\""}}}
	fail.Golden = &results.Golden{State: "differs", Path: "golden/reference/cancel/mid-stream.golden",
		Diff: "-want +got\n@@ line 3 @@\n --> session/cancel sess#1\n-<-- cancelled\n+<-- end_turn\n"}

	attack := result("transport/noise", results.Fail, 80)
	attack.Failure = &transcript.Failure{Expected: []string{"lines of JSON"}, Observed: hostile, Stderr: hostile,
		Tail: []string{hostile}}
	attack.FailureClass = results.Fail
	attack.Notes = []string{hostile}

	broken := result("setup/crash", results.Error, 40)
	broken.Reason = "the agent's command does not exist"
	broken.Failure = &transcript.Failure{Reason: "starting the agent: exec: \"nope\": not found",
		Advice: "check the command after --"}
	broken.FailureClass = results.Error

	known := result("load/replay", results.Fail, 500)
	known.Known, known.Waits = true, results.Waits{Start: 20 * time.Millisecond, Deadline: 400 * time.Millisecond}
	known.Checks = []results.Check{{ID: "load/replay#same", Slug: "same", Line: 9, Class: results.Fail,
		Verdict: results.Fail, Known: true,
		Failure: &transcript.Failure{Expected: []string{"the same history"}, Observed: "nothing"}}}

	skip := result("load/modes", results.Skip, 3)
	skip.Reason = "the agent does not advertise loadSession"
	unsure := result("cancel/idle", results.Inconclusive, 60)
	unsure.Reason = "nothing was provably open when the turn ended"
	once, twice := result("permission/held", results.Pass, 70), result("permission/held", results.Fail, 75)
	once.Repeat, twice.Repeat = 1, 2
	twice.Golden = &results.Golden{State: "differs", Path: "golden/reference/permission/held.golden",
		Diff: "-want +got\n-a\n+b\n"}
	fresh := result("files/range", results.Pass, 90)
	fresh.Golden = &results.Golden{State: "new"}

	all := []results.Result{pass, fail, attack, broken, known, skip, unsure, once, twice, fresh}
	return results.Run{
		Version: 1, Tool: "acp-test 0.1.0", Command: "acp-test run --agent example",
		Agent: results.Agent{Profile: "example", Title: "Example", Command: []string{"example", "--acp"},
			Version: "1.2.3"},
		Protocol: "1", Seed: 1, Started: started, Duration: 3400 * time.Millisecond, Out: "acp-test-out",
		Verdict: results.Error, Exit: 2,
		Counts: results.Counts{Total: 10, Pass: 3, Fail: 3, Known: 1, Skip: 1, Inconclusive: 1, Error: 1, Flaky: 1,
			NewGoldens: 1, Warnings: 1},
		Results: all, Causes: verdict.Causes(all),
		Flaky: []results.Flaky{{ID: "permission/held", Passed: 1, Of: 2}},
		Against: &results.Against{Run: "example 1.2.2, 2026-11-01 09:00 UTC", Changes: []results.Change{
			{ID: "cancel/mid-stream", What: "verdict", Was: results.Pass, Is: results.Fail},
			{ID: "cancel/mid-stream", What: "check", Name: "cancelled", Was: results.Pass, Is: results.Fail},
			{ID: "cancel/mid-stream", What: "rule", Name: "LATE-CONTENT", Is: results.Fail},
			{ID: "cancel/mid-stream", What: "text",
				Diff: "-want +got\n-<-- cancelled\n+<-- end_turn " + hostile + "\n"},
			{ID: "prompt/text", What: "rule", Name: "TOOL-ID", Was: results.Warn},
			{ID: "prompt/text", What: "check", Name: "again", Was: results.Pass},
			{ID: "load/list", What: "scenario", Was: results.Pass},
			{ID: "files/range", What: "scenario", Is: results.Pass}}},
		Stale: []string{"golden/example/old.golden: no scenario has this id"},
		Notes: []string{"1 golden is new: acp-test run --update writes it"},
		Conformance: &results.Conformance{Verdict: "NOT CONFORMANT", Requirements: []results.RequirementOutcome{
			{ID: "CANCEL-003", Tier: "MANDATORY", Level: "must", Verdict: results.Fail, Evidence: 4,
				Reason: "end_turn | <b>", Checks: []string{"cancel/mid-stream#cancelled"}}}},
		Sweep: &results.Sweep{Points: []string{"after tool_call"}, Actions: []string{"cancel"},
			Cells: []results.SweepCell{{Scenario: "prompt/text", Point: "after tool_call", Action: "cancel",
				Verdict: results.Fail, Finding: "LATE-CONTENT"}}, Explored: 10, Pruned: 2,
			Repros: []string{"repro/LATE-CONTENT-1.txtar"}},
	}
}

// screens is a failure that would fill many screens.
func screens() results.Result {
	r := results.Result{ID: "long/story", File: "suites/long/story.txtar", Verdict: results.Fail,
		Rerun: "acp-test run --run long/story"}
	for i := range 9 {
		r.Checks = append(r.Checks, results.Check{ID: fmt.Sprintf("long/story#c%d", i), Line: i + 1,
			Title: "It is short.", Class: results.Fail, Verdict: results.Fail,
			Failure: &transcript.Failure{Expected: []string{"less"}, Observed: strings.Repeat("more\n", 30),
				Tail: strings.Split(strings.Repeat("line\n", 30), "\n"), Diff: strings.Repeat("+x\n", 100)}})
	}
	return r
}
