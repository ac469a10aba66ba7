package mockclient

import (
	"context"
	"fmt"

	"github.com/acp-test/acp-test/transcript"
)

// Turn is one prompt and what the agent makes of it.
type Turn struct {
	*Call
	Session *Session
}

// Prompt starts a turn. It returns when the prompt is written; a prompt that
// was not, because it could not or because the agent does not take such blocks,
// is a turn that is done, with the error in Wait. Nothing
// keeps two turns of a session from running at once.
func (s *Session) Prompt(ctx context.Context, blocks ...Content) *Turn {
	return s.PromptMeta(ctx, nil, blocks...)
}

// PromptMeta is Prompt with a _meta object, such as a trace context.
func (s *Session) PromptMeta(ctx context.Context, meta map[string]any, blocks ...Content) *Turn {
	params := map[string]any{"sessionId": s.ID, "prompt": append([]Content{}, blocks...)}
	if meta != nil {
		params["_meta"] = meta
	}
	if err := s.e.mayPrompt(blocks); err != nil {
		c := &Call{e: s.e, done: make(chan struct{})}
		c.Entry.Method = "session/prompt"
		c.finish(transcript.Entry{}, err)
		return &Turn{Call: c, Session: s}
	}
	return &Turn{Call: s.e.CallContext(ctx, "session/prompt", params), Session: s}
}

// promptGates are the block types an agent must ask for (ACP v1, Prompt
// Capabilities); text and resource_link go to every agent.
var promptGates = map[string]string{"image": "image", "audio": "audio", "resource": "embeddedContext"}

func (e *Editor) mayPrompt(blocks []Content) error {
	if err := e.need("session/prompt", ""); err != nil {
		return err
	}
	for _, b := range blocks {
		kind, _ := b["type"].(string)
		if gate := promptGates[kind]; gate != "" {
			if err := e.need("session/prompt with "+kind, "agentCapabilities.promptCapabilities."+gate); err != nil {
				return err
			}
		}
	}
	return nil
}

// Wait waits for the end of the turn and returns its stop reason.
func (t *Turn) Wait(ctx context.Context) (stop string, err error) {
	resp, err := t.Call.Wait(ctx)
	if err != nil {
		return "", err
	}
	return resp.JSON().Path("result.stopReason").Str(), nil
}

// Ended is the end of the turn with a stop reason; with "" any reason. An error
// answer, and any other reason, make it unmeetable.
func (t *Turn) Ended(stop string) transcript.Expectation {
	what := "the turn's end"
	if stop != "" {
		what += " with " + stop
	}
	return transcript.Expect(what, func() transcript.Fold {
		return func(f transcript.Entry) (transcript.Verdict, string) {
			if f.Kind != transcript.Response || f.Source != transcript.Agent || f.Ref != t.Entry.Seq || f.Ref == 0 {
				return transcript.Unmet, "the turn is open"
			}
			if rpc := errorOf(f); rpc != nil {
				return transcript.Unmeetable, fmt.Sprintf("the turn ended with the error %v", rpc)
			}
			got := f.JSON().Path("result.stopReason").Str()
			if stop != "" && got != stop {
				return transcript.Unmeetable, fmt.Sprintf("the turn ended with %q", got)
			}
			return transcript.Met, ""
		}
	})
}
