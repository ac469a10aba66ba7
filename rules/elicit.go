package rules

import (
	"net/url"

	"github.com/acp-test/acp-test/wire"
)

// elicitScope judges elicitations; the modes are for CAP-GATE, the shape is
// for SHAPE.
func elicitScope() Rule {
	const (
		scope = iota
		address
		reused
		complete
		again
	)
	return Rule{
		ID:       "ELICIT-SCOPE",
		Sentence: "An elicitation belongs to one session or one open request, and an elicitationId to one elicitation.",
		Points: []Point{
			scope:    {"scope", Fail, []string{"ELICIT-004"}, "an elicitation names no session and no open request, or both"},
			address:  {"url", Fail, []string{"ELICIT-007"}, "the url of an elicitation is not absolute"},
			reused:   {"id-in-use", Fail, []string{"ELICIT-013"}, "two outstanding elicitations have the same elicitationId"},
			complete: {"unknown-complete", Fail, []string{"ELICIT-014"}, "elicitation/complete names no elicitation in url mode"},
			again:    {"complete-twice", Lint, []string{"ELICIT-014"}, "elicitation/complete came twice"},
		},
		start: func(w *watch) {
			type elicitation struct {
				seq  int
				open bool
			}
			known := map[*conn]map[string]*elicitation{}
			w.on(func(ev *event) {
				p := ev.params
				w.saw(scope)
				session, request := p.Get("sessionId"), p.Get("requestId")
				hasRequest := request.Exists() && !request.IsNull()
				switch {
				case session.Exists() && hasRequest:
					w.find(scope, ev, "", nil, "The elicitation names both a session and a request.")
				case session.Exists():
					if s := ev.session; s != nil && !s.known() && !s.addressed && ev.conn.initAsked > 0 {
						w.find(scope, ev, "", nil, "The elicitation names session %q, which does not exist.", clip(ev.Session))
					}
				case !hasRequest:
					w.find(scope, ev, "", nil, "The elicitation names neither a session nor a request.")
				case ev.conn.ids[OfClient][idOf(request)] == nil && ev.conn.initAsked > 0:
					w.find(scope, ev, "", nil, "The elicitation names request %s, which is not open.", clip(string(request.Raw())))
				}
				if !p.Get("mode").Is("url") {
					return
				}
				w.saw(address)
				if target := p.Get("url"); target.Kind() == wire.String {
					if u, err := url.Parse(target.Str()); err != nil || u.Scheme == "" {
						w.find(address, ev, "", nil, "The url %q of the elicitation is not absolute.", clip(target.Str()))
					}
				}
				w.saw(reused)
				ids := known[ev.conn]
				if ids == nil {
					ids = map[string]*elicitation{}
					known[ev.conn] = ids
				}
				id := p.Get("elicitationId").Str()
				if old := ids[id]; old != nil && old.open {
					w.find(reused, ev, id, []int{old.seq}, "The elicitationId %q is that of another elicitation still outstanding.", clip(id))
				}
				if len(ids) < rememberedRequests {
					ids[id] = &elicitation{ev.Seq, true}
				}
			}, asked(elicit))
			w.on(func(ev *event) {
				if e := known[ev.conn][ev.request.value]; e != nil && !ev.result.Get("action").Is("accept") {
					e.open = false
				}
			}, answered(elicit))
			w.on(func(ev *event) {
				w.saw(complete)
				w.saw(again)
				id := ev.params.Get("elicitationId").Str()
				switch e := known[ev.conn][id]; {
				case e == nil && ev.conn.initAsked > 0 && len(known[ev.conn]) < rememberedRequests:
					w.find(complete, ev, id, nil, "elicitation/complete names %q, which is no elicitation in url mode of this connection.", clip(id))
				case e != nil && !e.open:
					w.find(again, ev, id, []int{e.seq}, "elicitation/complete came for %q, which was over.", clip(id))
				case e != nil:
					e.open = false
				}
			}, elicitationDone)
		},
	}
}
