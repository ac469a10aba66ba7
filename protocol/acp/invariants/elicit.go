package invariants

import (
	"net/url"

	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// elicitScope judges elicitations; the modes are for CAP-GATE, the shape is
// for SHAPE.
func elicitScope() *rule {
	r := ofAgent("ELICIT-SCOPE",
		"An elicitation belongs to one session or one open request, and an elicitationId to one elicitation.")
	scope := r.Fail("scope", "an elicitation names no session and no open request, or both", "ELICIT-004")
	address := r.Fail("url", "the url of an elicitation is not absolute", "ELICIT-007")
	reused := r.Fail("id-in-use", "two outstanding elicitations have the same elicitationId", "ELICIT-013")
	complete := r.Fail("unknown-complete", "elicitation/complete names no elicitation in url mode", "ELICIT-014")
	again := r.Lint("complete-twice", "elicitation/complete came twice", "ELICIT-014")
	return r.watching(func(w *watch) {
		type elicitation struct {
			seq  int
			open bool
		}
		known := map[*conn]map[string]*elicitation{}
		w.on(func(ev *event) {
			p := ev.params
			w.Saw(scope)
			session, request := p.Get("sessionId"), p.Get("requestId")
			hasRequest := request.Exists() && !request.IsNull()
			switch {
			case session.Exists() && hasRequest:
				w.find(scope, ev, "", nil, "The elicitation names both a session and a request.")
			case session.Exists():
				if s := ev.session; s != nil && !s.known() && !s.addressed && ev.conn.initAsked > 0 {
					w.find(scope, ev, "", nil, "The elicitation names session %q, which does not exist.", ev.Session)
				}
			case !hasRequest:
				w.find(scope, ev, "", nil, "The elicitation names neither a session nor a request.")
			case ev.conn.ids[rules.OfClient][idOf(request)] == nil && ev.conn.initAsked > 0:
				w.find(scope, ev, "", nil, "The elicitation names request %s, which is not open.", clip(string(request.Raw())))
			}
			if !p.Get("mode").Is("url") {
				return
			}
			w.Saw(address)
			if target := p.Get("url"); target.Kind() == wire.String {
				if u, err := url.Parse(target.Str()); err != nil || u.Scheme == "" {
					w.find(address, ev, "", nil, "The url %q of the elicitation is not absolute.", target.Str())
				}
			}
			w.Saw(reused)
			ids := known[ev.conn]
			if ids == nil {
				ids = map[string]*elicitation{}
				known[ev.conn] = ids
			}
			id := p.Get("elicitationId").Str()
			if old := ids[id]; old != nil && old.open {
				w.find(reused, ev, id, []int{old.seq}, "The elicitationId %q is that of another elicitation still outstanding.", id)
			}
			if len(ids) < rememberedRequests {
				ids[id] = &elicitation{ev.Seq, true}
			}
		}, asked(elicit))
		w.on(func(ev *event) {
			if e := known[ev.conn][ev.request.asks]; e != nil && !ev.result.Get("action").Is("accept") {
				e.open = false
			}
		}, answered(elicit))
		w.on(func(ev *event) {
			w.Saw(complete, again)
			id := ev.params.Get("elicitationId").Str()
			switch e := known[ev.conn][id]; {
			case e == nil && ev.conn.initAsked > 0 && len(known[ev.conn]) < rememberedRequests:
				w.find(complete, ev, id, nil,
					"elicitation/complete names %q, which is no elicitation in url mode of this connection.", id)
			case e != nil && !e.open:
				w.find(again, ev, id, []int{e.seq}, "elicitation/complete came for %q, which was over.", id)
			case e != nil:
				e.open = false
			}
		}, elicitationDone)
	})
}
