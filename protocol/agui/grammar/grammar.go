// Package grammar draws random conversations of AG-UI that suit an agent.
package grammar

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// episodes has the table of runs, states and acts. probes, below, has the runs of calibration.
//
//go:embed episodes.txtar
var episodes []byte

//go:embed probes.txtar
var probes []byte

const head = "protocol ag-ui\n# A conversation that was drawn.\ngolden off\n"

// shows has, by probe, the event that proves what the agent can do: the type of the event, and a member that the event
// must have, or "". In the probe about permissions, an agent that asks ends the run with an interrupt.
var shows = map[string][2]string{
	"read": {"TOOL_CALL_RESULT", ""}, "write": {"TOOL_CALL_RESULT", ""}, "asks": {"RUN_FINISHED", "outcome.interrupts"},
	"state": {"STATE_DELTA", ""}, "front": {"TOOL_CALL_START", ""}, "version": {"RUN_STARTED", "protocolVersion"},
	"thinks": {"REASONING_START", ""},
}

// V1 returns the generator of conversations in AG-UI.
func V1() *sweep.Generator {
	return &sweep.Generator{Questions: questions, Learn: learn}
}

func questions(*agents.Profile) map[string]sweep.Archive {
	out := map[string]sweep.Archive{}
	for _, f := range txtar.Parse(probes).Files {
		lines, model, _ := strings.Cut(string(f.Data), "model:\n")
		a := sweep.Split([]byte(head + lines))
		a.Model = "turns:\n" + model
		out[f.Name] = a
	}
	return out
}

// learn returns the grammar for an agent, and a sentence about what the agent can do. seen has the transcripts of the
// probes, by probe.
func learn(seen map[string]*transcript.Transcript) (sweep.Grammar, string) {
	has := map[string]bool{}
	for name, t := range seen {
		for e := range t.All() {
			show := shows[name]
			if aguiframe.Event(e) == show[0] && (show[1] == "" || e.JSON().Path(show[1]).Exists()) {
				has[name] = true
			}
		}
	}
	g := &sweep.Episodes{Head: head, Opens: "thread {t}\n", Has: has}
	return g.Read(episodes), fmt.Sprintf("The agent can: %s.", strings.Join(slices.Sorted(maps.Keys(has)), ", "))
}
