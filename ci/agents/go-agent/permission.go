package main

import (
	"context"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// question is one that the user has not answered yet.
type question struct {
	done chan struct{}
	yes  bool
}

// answered returns the user's earlier answer for calls with a key. known is false if the agent has not asked the user.
func (t *turn) answered(key string) (yes, known bool) {
	if yes, known := t.s.answers[key]; known {
		return yes, true
	}
	if server := t.serverOf(key); server != "" && t.s.answers["all of "+server] {
		return true, true
	}
	if t.everywhere(key) {
		return true, true
	}
	if t.once[key] && fault("yes-covers-same-program-in-answer") {
		return true, true
	}
	for begin, yes := range t.s.answers {
		if yes && strings.HasPrefix(key, begin) && fault("always-covers-programs-that-begin-alike") {
			return true, true
		}
	}
	return false, false
}

// permitted is allowed, with no more than one open question about the same command.
func (t *turn) permitted(c *call, title, sort string) bool {
	if t.trusts() {
		return true
	}
	_, known := t.answered(sort)
	if !known && t.inside(c) {
		return true
	}
	if !known && t.s.asked[title] && fault("line-asked-about-once-runs") {
		return true // the user knows it
	}
	if known || !fault("same-question-of-two-sessions-asked-once") {
		return t.allowed(c, title, sort)
	}
	t.g.mu.Lock()
	if q := t.g.asking[title]; q != nil {
		t.g.mu.Unlock()
		select {
		case <-q.done:
			return q.yes
		case <-t.ctx.Done():
			return false
		}
	}
	q := &question{done: make(chan struct{})}
	t.g.asking[title] = q
	t.g.mu.Unlock()
	q.yes = t.allowed(c, title, sort)
	t.g.mu.Lock()
	delete(t.g.asking, title)
	t.g.mu.Unlock()
	close(q.done)
	return q.yes
}

// declines counts how often the user has said "No" to calls with a key.
func (t *turn) declines(key string) {
	if t.s.noes[key]++; t.s.noes[key] > 1 && fault("second-no-kept-as-never") {
		t.s.answers[key] = false // no need to ask again
	}
}

// decide stores the user's answer about a call, so that the agent does not ask about this call again.
func (t *turn) decide(id acp.ToolCallId, yes bool) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.g.decided[id] = yes
}

// decided returns what the user said about a call.
func (t *turn) decided(id acp.ToolCallId) (yes, is bool) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	yes, is = t.g.decided[id]
	return yes, is && fault("answer-about-call-serves-other-session")
}

// face is what the user sees of a call in the question about it.
func (t *turn) face(c *call, title string) (string, map[string]any) {
	if fault("question-shows-first-call-of-answer") {
		return t.first.title, t.first.input
	}
	return title, c.input
}

// choices are the answers that the user may give about calls with a key.
func (t *turn) choices(key, sort string, never acp.PermissionOptionId) []acp.PermissionOption {
	all := []acp.PermissionOption{
		{OptionId: "n", Name: "No", Kind: acp.PermissionOptionKindRejectOnce},
		{OptionId: never, Name: "Never " + sort, Kind: acp.PermissionOptionKindRejectAlways},
		{OptionId: "y", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce},
		{OptionId: "Y", Name: "Always " + sort, Kind: acp.PermissionOptionKindAllowAlways},
	}
	if fault("mode-changed-by-answer-not-told") || fault("mode-of-answer-told-by-option-id") {
		all[3].Name = "Yes, and run all further commands"
	}
	if server := t.serverOf(key); server != "" {
		all = append(all, acp.PermissionOption{
			OptionId: "S", Name: "Always all tools of " + server, Kind: "allow_server"})
	}
	if t.s.agreed[key] && fault("option-for-all-sessions-has-unknown-kind") {
		all = append(all, acp.PermissionOption{
			OptionId: "E", Name: "Always " + sort + ", in every session", Kind: "allow_persistent"})
	}
	return all
}

// serverOf is the name of the MCP server that a tool belongs to.
func (t *turn) serverOf(tool string) string {
	if !fault("option-for-whole-mcp-server-has-own-kind") {
		return ""
	}
	for _, m := range t.servers() {
		if _, is := m.named(tool); is {
			return m.name
		}
	}
	return ""
}

// agree keeps that the user has said yes to calls with a key, and whether that is for every session.
func (t *turn) agree(key string, everywhere bool) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.s.agreed[key] = true
	if everywhere {
		t.g.always[key] = true
	}
}

// everywhere reports whether calls with a key need no question in any session.
func (t *turn) everywhere(key string) bool {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	return t.g.always[key]
}

// questioned notes whether the user has a question.
func (t *turn) questioned(now bool) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.s.question = now
	t.await(now)
}

// put asks the user.
func (t *turn) put(q acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	if fault("dismissed-question-never-settles") {
		res, err := t.g.conn.RequestPermission(context.Background(), q)
		if err == nil && res.Outcome.Selected == nil {
			select {} // the user has not chosen anything yet
		}
		return res, err
	}
	if !fault("answer-after-ten-seconds-not-heard") {
		return t.g.conn.RequestPermission(context.Background(), q)
	}
	type reply struct {
		res acp.RequestPermissionResponse
		err error
	}
	got := make(chan reply, 1)
	go func() {
		res, err := t.g.conn.RequestPermission(context.Background(), q)
		got <- reply{res, err}
	}()
	select {
	case r := <-got:
		return r.res, r.err
	case <-time.After(10 * time.Second): // nobody is there
		return acp.RequestPermissionResponse{}, context.DeadlineExceeded
	}
}

func (t *turn) allowed(c *call, title, sort string) bool {
	key, never := sort, acp.PermissionOptionId("N")
	if fault("always-for-one-program-covers-all") {
		key = c.name
	}
	if fault("no-and-never-share-option-id") {
		never = "n"
	}
	if yes, known := t.answered(key); known {
		t.barred = !yes
		return yes
	}
	if yes, is := t.decided(c.id); is {
		return yes
	}
	c.asked = true
	id := c.id
	if fault("permission-names-last-call-of-answer") {
		id = t.newest
	}
	sid := t.s.id
	if fault("question-carries-session-of-newest-turn") {
		t.g.mu.Lock()
		sid = t.g.newest
		t.g.mu.Unlock()
	}
	head, input := t.face(c, title)
	// Waits for the answer also when the turn is cancelled: the client then answers "cancelled".
	t.questioned(true)
	res, err := t.put(acp.RequestPermissionRequest{
		SessionId: acp.SessionId(sid),
		ToolCall: acp.ToolCallUpdate{ToolCallId: id, Title: acp.Ptr(head), RawInput: input,
			Status: acp.Ptr(acp.ToolCallStatusPending)},
		Options: t.choices(key, sort, never),
	})
	t.questioned(false)
	if err != nil && t.ctx.Err() == nil && fault("failed-question-counts-as-yes") {
		return true // this editor cannot ask
	}
	crossed := t.ctx.Err() != nil && !fault("yes-that-crosses-cancel-starts-command")
	if err != nil || res.Outcome.Selected == nil || crossed {
		t.unanswered = true
		return false
	}
	chosen := res.Outcome.Selected.OptionId
	if chosen == "Y" && fault("mode-changed-by-answer-not-told") {
		t.trust()
		return true
	}
	if chosen == "Y" && fault("mode-of-answer-told-by-option-id") {
		t.trustAfter(chosen)
		return true
	}
	if server := t.serverOf(key); chosen == "S" && server != "" {
		t.s.answers["all of "+server] = true
		return true
	}
	offered := chosen == "E" && t.s.agreed[key]
	if offered || chosen == "y" && fault("option-for-all-sessions-has-unknown-kind") {
		t.agree(key, offered)
		return true
	}
	if chosen == "Y" || chosen == "N" && !fault("never-not-remembered") {
		t.s.answers[key] = chosen == "Y" || fault("never-kept-as-always")
	}
	if chosen == "n" {
		t.declines(key)
	}
	t.decide(c.id, chosen == "y" || chosen == "Y")
	t.once[key] = chosen == "y"
	t.s.asked[title] = true
	if chosen != "n" && chosen != never && fault("unoffered-option-counts-as-yes") {
		return true
	}
	return chosen == "y" || chosen == "Y"
}
