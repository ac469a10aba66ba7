package acp_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// greeted is the beginning of a connection in version 2, with a session s.
const greeted = `> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c",` +
	`"version":"1"},"capabilities":{}}}
< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},` +
	`"capabilities":{"session":{"resume":{}}}}}
> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}
< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}
`

func updates(update string) string {
	return `< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":` +
		update + "}}}\n"
}

func TestRulesOfVersion2WhereMessagesCross(t *testing.T) {
	prompt := func(id string) string {
		return `> {"jsonrpc":"2.0","id":` + id +
			`,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}}` + "\n"
	}
	inserted := func(id string) string {
		return `< {"jsonrpc":"2.0","id":` + id + `,"result":{"messageId":"m` + id + `"}}` + "\n" +
			updates(`"user_message_chunk","messageId":"m`+id+`","content":{"type":"text","text":"go"}`)
	}
	running, ended := updates(`"state_update","state":"running"`),
		updates(`"state_update","state":"idle","stopReason":"end_turn"`)
	cancel := `> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}` + "\n"
	cancelled := updates(`"state_update","state":"idle","stopReason":"cancelled"`)
	resume := `> {"jsonrpc":"2.0","id":9,"method":"session/resume","params":{"sessionId":"s","cwd":"/w",` +
		`"mcpServers":[],"replayFrom":{"type":"start"}}}` + "\n"
	history := updates(`"user_message_chunk","messageId":"m2","content":{"type":"text","text":"go"}`)
	said := updates(`"agent_message_chunk","messageId":"a2","content":{"type":"text","text":"Yes."}`)
	idle, resumed := updates(`"state_update","state":"idle"`), `< {"jsonrpc":"2.0","id":9,"result":{}}`+"\n"
	for _, c := range []struct{ name, rule, frames string }{
		{"the turn ends in a resume", "",
			prompt("2") + inserted("2") + running + resume + ended + history + idle + resumed},
		{"the history comes after the state", "V2-RESUME",
			prompt("2") + inserted("2") + running + ended + resume + idle + history + resumed},
		{"a message of the turn in a resume", "",
			prompt("2") + inserted("2") + running + resume + history + said + idle + resumed + ended},
		{"a message that is new in the history", "V2-RESUME",
			prompt("2") + inserted("2") + running + ended + resume + history + said + idle + resumed},
		{"two cancels, a prompt between them", "",
			prompt("2") + inserted("2") + running + cancel + prompt("3") + cancel + cancelled + inserted("3") +
				running + cancelled},
		{"a queued prompt is cancelled after the first turn, a third prompt came before it ended", "",
			prompt("2") + inserted("2") + running + prompt("3") + ended + cancel + prompt("4") + inserted("3") +
				running + cancelled + inserted("4") + running + ended},
		{"one cancel, behind both prompts", "V2-CANCEL",
			prompt("2") + inserted("2") + running + prompt("3") + cancel + cancelled + inserted("3") +
				running + cancelled},
	} {
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acp.V2().Classifier})
		if err != nil {
			t.Fatal(err)
		}
		checker := acp.V2().Rules.NewChecker(rules.Config{})
		log.Observe(checker.Observe)
		for line := range strings.Lines(greeted + c.frames) {
			from := transcript.Agent
			if line[0] == '>' {
				from = transcript.Editor
			}
			log.AppendFrame(0, from, []byte(strings.TrimSpace(line[2:])), 0)
		}
		var failed []string
		for _, f := range checker.Finish(rules.End{Clean: true, Linger: time.Second}) {
			if f.Class == rules.Fail {
				failed = append(failed, f.Rule)
			}
		}
		if want := strings.Fields(c.rule); !slices.Equal(slices.Compact(failed), want) {
			t.Errorf("%s: %v fail, want %v", c.name, failed, want)
		}
	}
}
