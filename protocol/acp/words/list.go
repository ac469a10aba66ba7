package words

import (
	"context"
	"fmt"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// listWords reads the words after "list": nothing, or "all" and the names of sessions.
func (a *sessionAct) listWords() {
	l := a.l
	if len(l.Rest) == 1 {
		return
	}
	if l.Rest[1].Raw() != "all" {
		l.Usage(l.Rest[1].Column, "session list takes only all, then names of sessions, not %q", l.Rest[1].Raw())
	}
	if w, ok := a.opts["cursor"]; ok {
		l.Usage(w.Column, "session list all takes no cursor=")
	}
	if w, ok := a.opts["wait"]; ok && !a.wait {
		l.Usage(w.Column, "session list all takes no wait=no: it waits for each page")
	}
	a.all = true
	for i := 2; i < len(l.Rest); i++ {
		name, ok := l.SessionName(i)
		if !ok {
			l.Mistake(l.Rest[i].Column, openIt, "no session %s is open", l.Rest[i].Raw())
		}
		a.names = append(a.names, name)
	}
}

// list sends session/list once. With the word all, it repeats the request until the agent returns no cursor.
func (a *sessionAct) list(ctx context.Context, b *scenarios.Branch) error {
	if err := b.Begin(ctx); err != nil {
		return err
	}
	params := map[string]any{}
	if a.meta != nil {
		params["_meta"] = a.meta
	}
	if w, ok := a.opts["cwd"]; ok {
		d, err := a.dir(b, w)
		if err != nil {
			return err
		}
		params["cwd"] = d
	}
	if w, ok := a.opts["cursor"]; ok {
		c, err := b.Expand(w)
		if err != nil {
			return a.l.Fault(err)
		}
		params["cursor"] = c
	}
	if a.all {
		return a.pages(ctx, b, params)
	}
	_, err := call(ctx, b, a.l, nil, "session/list", params, a.wait)
	return err
}

// maxPages is the maximum number of pages that the method pages requests before it reports an endless list.
const maxPages = 1000

// pages follows the cursors of session/list to the end. No cursor and no session may occur twice, and the list must
// contain each session that the line names.
func (a *sessionAct) pages(ctx context.Context, b *scenarios.Branch, params map[string]any) error {
	cursors, sessions := map[string]int{}, map[string]int{}
	for page := 1; ; page++ {
		e, err := call(ctx, b, a.l, nil, "session/list", params, true)
		if err != nil {
			return err
		}
		for s := range e.JSON().Path("result.sessions").Items() {
			id := s.Get("sessionId").Str()
			if first := sessions[id]; first > 0 {
				return b.Back(a.l, true, "each session once", "session "+id+" came twice", first, e.Seq)
			}
			sessions[id] = e.Seq
		}
		next := e.JSON().Path("result.nextCursor")
		if !next.Exists() || next.Kind() == wire.Null {
			return a.listed(b, sessions, e)
		}
		cursor := next.Str()
		if first := cursors[cursor]; first > 0 {
			return b.Back(a.l, true, "a new cursor, or none on the last page",
				fmt.Sprintf("the cursor %q came twice: the list would never end", cursor), first, e.Seq)
		}
		if page == maxPages {
			return b.Back(a.l, true, "a last page", fmt.Sprintf("%d pages, each with a next cursor", maxPages), e.Seq)
		}
		cursors[cursor] = e.Seq
		params["cursor"] = cursor
	}
}

// listed returns a Miss if a session that the line names is on none of the pages.
func (a *sessionAct) listed(b *scenarios.Branch, sessions map[string]int, last transcript.Entry) error {
	for _, name := range a.names {
		s := b.Named(name)
		if s == nil {
			return a.l.Fault(b.NotOpen(name))
		}
		if sessions[s.ID] == 0 {
			return b.Back(a.l, true, "session "+name+" in the list", fmt.Sprintf("%d sessions without %s", len(sessions), s.ID),
				last.Seq)
		}
	}
	return nil
}
