package reports_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// hostile is text as an agent that wants to break reports would send it.
const hostile = "<script>alert(1)</script>]]>\x1b[2J\x00\x07&\"'`|\ufffe ::error::x\r\n# SKIP"

// sample is a run in which everything there is happened once.
func sample() scenarios.Run {
	started := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	result := func(id string, v scenarios.Verdict, ms int) scenarios.Result {
		return scenarios.Result{ID: id, File: "suites/" + id + ".txtar", Title: "About " + id, Verdict: v, Started: started,
			Duration: time.Duration(ms) * time.Millisecond, Frames: 12, Rerun: "acp-test run --run '^" + id + "$'",
			Artifacts: map[string]string{"transcript": id + "/transcript.jsonl"}}
	}
	pass := result("prompt/text", scenarios.Pass, 120)
	pass.Checks = []scenarios.Check{{ID: "prompt/text#ends", Slug: "ends", Line: 4, Title: "The turn ends.", Class: scenarios.Fail, Verdict: scenarios.Pass, Requirements: []string{"PROMPT-003"}}}
	pass.Findings = []scenarios.Finding{{Rule: "TOOL-ORDER", Class: scenarios.Warn, Message: "A tool call went back from completed to pending.", Entries: []int{4}}}
	pass.Evidence = map[string]int{"TOOL-ORDER": 3}

	fail := result("cancel/mid-stream", scenarios.Fail, 2340)
	fail.Checks = []scenarios.Check{
		{ID: "cancel/mid-stream#cancelled", Slug: "cancelled", Line: 14, Title: "The turn ends as cancelled.", Class: scenarios.Fail, Verdict: scenarios.Fail, Requirements: []string{"CANCEL-003"},
			Failure: &transcript.Failure{Where: "suites/cancel/mid-stream.txtar:14", Requirement: []string{"CANCEL-003"}, Statement: "A cancelled turn ends with the stop reason cancelled. (prompt-turn, Cancellation)",
				Expected: []string{"the response to session/prompt with cancelled"}, Observed: "end_turn, 20 ms after the cancel", Verdict: "unmeetable",
				Reason: "the response came while the model's gate mid was closed", Entries: []int{5, 7},
				Tail: []string{"5  1.2s  --> session/cancel s-1", "7  1.22s <-- end_turn"}, Stderr: "warning: aborted\n", Process: "running"}},
		{ID: "cancel/mid-stream#again", Slug: "again", Line: 20, Title: "The session works again.", Class: scenarios.Fail, Verdict: scenarios.Fail, NotReached: true},
	}
	fail.Findings = []scenarios.Finding{{Rule: "LATE-CONTENT", Class: scenarios.Fail, Requirements: []string{"CANCEL-005"}, Citation: "prompt-turn, Cancellation", Session: "s-1", Entries: []int{8},
		Message: "Content came after the response that ended the turn.", Detail: "agent_message_chunk", Count: 2, Tail: []string{"7  <-- end_turn", "8  <-- agent_message_chunk \"x\""}}}
	fail.Golden = &scenarios.Golden{State: "differs", Path: "golden/reference/cancel/mid-stream.golden", Diff: "-want +got\n@@ line 3 @@\n --> session/cancel sess#1\n-<-- cancelled\n+<-- end_turn\n"}

	attack := result("transport/noise", scenarios.Fail, 80)
	attack.Failure = &transcript.Failure{Expected: []string{"lines of JSON"}, Observed: hostile, Stderr: hostile, Tail: []string{hostile}}
	attack.FailureClass = scenarios.Fail
	attack.Notes = []string{hostile}

	broken := result("setup/crash", scenarios.Error, 40)
	broken.Reason = "the agent's command does not exist"
	broken.Failure = &transcript.Failure{Reason: "starting the agent: exec: \"nope\": not found", Advice: "check the command after --"}
	broken.FailureClass = scenarios.Error

	known := result("load/replay", scenarios.Fail, 500)
	known.Known, known.Waits = true, scenarios.Waits{Start: 20 * time.Millisecond, Deadline: 400 * time.Millisecond}
	known.Checks = []scenarios.Check{{ID: "load/replay#same", Slug: "same", Line: 9, Class: scenarios.Fail, Verdict: scenarios.Fail, Known: true, Failure: &transcript.Failure{Expected: []string{"the same history"}, Observed: "nothing"}}}

	skip := result("load/modes", scenarios.Skip, 3)
	skip.Reason = "the agent does not advertise loadSession"
	unsure := result("cancel/idle", scenarios.Inconclusive, 60)
	unsure.Reason = "nothing was provably open when the turn ended"
	once, twice := result("permission/held", scenarios.Pass, 70), result("permission/held", scenarios.Fail, 75)
	once.Repeat, twice.Repeat = 1, 2
	twice.Golden = &scenarios.Golden{State: "differs", Path: "golden/reference/permission/held.golden", Diff: "-want +got\n-a\n+b\n"}
	fresh := result("files/range", scenarios.Pass, 90)
	fresh.Golden = &scenarios.Golden{State: "new"}

	all := []scenarios.Result{pass, fail, attack, broken, known, skip, unsure, once, twice, fresh}
	return scenarios.Run{
		Version: 1, Tool: "acp-test 0.1.0", Command: "acp-test run --agent example", Agent: scenarios.Agent{Profile: "example", Title: "Example", Command: []string{"example", "--acp"}, Version: "1.2.3"},
		Protocol: "1", Seed: 1, Started: started, Duration: 3400 * time.Millisecond, Out: "acp-test-out", Verdict: scenarios.Error, Exit: 2,
		Counts:  scenarios.Counts{Total: 10, Pass: 3, Fail: 3, Known: 1, Skip: 1, Inconclusive: 1, Error: 1, Flaky: 1, NewGoldens: 1, Warnings: 1},
		Results: all, Causes: scenarios.Causes(all),
		Flaky: []scenarios.Flaky{{ID: "permission/held", Passed: 1, Of: 2}},
		Against: &scenarios.Against{Run: "example 1.2.2, 2026-11-01 09:00 UTC", Changes: []scenarios.Change{
			{ID: "cancel/mid-stream", What: "verdict", Was: scenarios.Pass, Is: scenarios.Fail},
			{ID: "cancel/mid-stream", What: "check", Name: "cancelled", Was: scenarios.Pass, Is: scenarios.Fail},
			{ID: "cancel/mid-stream", What: "rule", Name: "LATE-CONTENT", Is: scenarios.Fail},
			{ID: "cancel/mid-stream", What: "text", Diff: "-want +got\n-<-- cancelled\n+<-- end_turn " + hostile + "\n"},
			{ID: "prompt/text", What: "rule", Name: "TOOL-ID", Was: scenarios.Warn},
			{ID: "prompt/text", What: "check", Name: "again", Was: scenarios.Pass},
			{ID: "load/list", What: "scenario", Was: scenarios.Pass},
			{ID: "files/range", What: "scenario", Is: scenarios.Pass}}},
		Stale: []string{"golden/example/old.golden: no scenario has this id"},
		Notes: []string{"1 golden is new: acp-test run --update writes it"},
		Conformance: &scenarios.Conformance{Verdict: "NOT CONFORMANT", Requirements: []scenarios.RequirementOutcome{
			{ID: "CANCEL-003", Tier: "MANDATORY", Level: "must", Verdict: scenarios.Fail, Evidence: 4, Reason: "end_turn | <b>", Checks: []string{"cancel/mid-stream#cancelled"}}}},
		Sweep: &scenarios.Sweep{Points: []string{"after tool_call"}, Actions: []string{"cancel"}, Cells: []scenarios.SweepCell{{Scenario: "prompt/text", Point: "after tool_call", Action: "cancel", Verdict: scenarios.Fail, Finding: "LATE-CONTENT"}}, Explored: 10, Pruned: 2, Repros: []string{"repro/LATE-CONTENT-1.txtar"}},
	}
}

// screens is a failure that would fill many screens.
func screens() scenarios.Result {
	r := scenarios.Result{ID: "long/story", File: "suites/long/story.txtar", Verdict: scenarios.Fail, Rerun: "acp-test run --run long/story"}
	for i := range 9 {
		r.Checks = append(r.Checks, scenarios.Check{ID: fmt.Sprintf("long/story#c%d", i), Line: i + 1, Title: "It is short.", Class: scenarios.Fail, Verdict: scenarios.Fail,
			Failure: &transcript.Failure{Expected: []string{"less"}, Observed: strings.Repeat("more\n", 30), Tail: strings.Split(strings.Repeat("line\n", 30), "\n"), Diff: strings.Repeat("+x\n", 100)}})
	}
	return r
}
