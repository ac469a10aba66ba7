package schedules

import "github.com/acp-test/acp-test/fakellm"

// says is a turn of one reply, a text.
func says(text string) fakellm.TurnNode {
	return fakellm.TurnNode{Replies: []fakellm.ReplyNode{{Steps: []fakellm.StepNode{fakellm.NewText("text", text)}}}}
}

// plain is a turn without gates and pauses of its own.
func plain(t fakellm.TurnNode) fakellm.TurnNode { return t.Without("gate", "pause", "delay") }

func gate(name string) fakellm.StepNode { return fakellm.NewStep("gate", name) }
