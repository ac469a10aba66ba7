package invariants

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// elicitScope checks the scope, the url, the id and the end of elicitations. CAP-GATE checks their modes and SHAPE
// their shape.
func elicitScope(w *watch) {
	type elicitation struct {
		seq  int
		open bool
	}
	known := map[named]*elicitation{}
	w.On(func(ev *event) {
		p, why := ev.params, wrongScope(ev)
		w.judge("scope", why != "", ev, "", nil, "The elicitation names %s.", why)
		if !p.Get("mode").Is("url") {
			isForm := p.Get("mode").Is("form") || !isSet(p.Get("mode"))
			w.judge("form", isForm && halfForm(p.Get("requestedSchema")), ev, "", nil,
				"The requestedSchema of the form lacks the type \"object\" or its properties.")
			return
		}
		target := p.Get("url")
		u, err := url.Parse(target.Str())
		w.judge("url", target.Kind() == wire.String && (err != nil || u.Scheme == ""), ev, "", nil,
			"The url %q of the elicitation is not absolute.", target.Str())
		id := named{ev.conn, p.Get("elicitationId").Str()}
		if w.Saw("id-in-use"); known[id] != nil && known[id].open {
			w.find("id-in-use", ev, id.name, []int{known[id].seq},
				"Another outstanding elicitation already has the elicitationId %q.", id.name)
		}
		rules.Remember(known, rememberedRequests, id, &elicitation{ev.Seq, true})
	}, asked(elicit))
	w.On(func(ev *event) {
		if e := known[named{ev.conn, ev.request.asks}]; e != nil && !ev.result.Get("action").Is("accept") {
			e.open = false
		}
	}, answered(elicit))
	w.On(func(ev *event) {
		w.Saw("unknown-complete", "complete-twice")
		id := ev.params.Get("elicitationId").Str()
		switch e := known[named{ev.conn, id}]; {
		case e == nil && ev.conn.initAsked > 0 && len(known) < rememberedRequests:
			w.find("unknown-complete", ev, id, nil,
				"elicitation/complete names %q, which is not a url-mode elicitation of this connection.", id)
		case e != nil && !e.open:
			w.find("complete-twice", ev, id, []int{e.seq}, "elicitation/complete names %q, which had ended.", id)
		case e != nil:
			e.open = false
		}
	}, elicitationDone)
}

// halfForm reports whether a form's schema lacks a member that its sender must write.
func halfForm(schema wire.Value) bool {
	return schema.Kind() == wire.Object &&
		!(schema.Get("type").Is("object") && schema.Get("properties").Kind() == wire.Object)
}

// wrongScope describes the fault in the scope of an elicitation. It returns "" if the scope is exactly one session or
// one open request.
func wrongScope(ev *event) string {
	session, request := ev.params.Get("sessionId"), ev.params.Get("requestId")
	switch s := ev.session; {
	case session.Exists() && isSet(request):
		return "both a session and a request"
	case session.Exists():
		if s != nil && !s.known() && !s.addressed && ev.conn.initAsked > 0 {
			return fmt.Sprintf("session %q, which does not exist", clip(ev.Session))
		}
	case !isSet(request):
		return "neither a session nor a request"
	case ev.conn.ids[rules.OfClient][idOf(request)] == nil && ev.conn.initAsked > 0:
		return fmt.Sprintf("request %s, which is not open", clip(string(request.Raw())))
	}
	return ""
}

// elicitCare checks that forms ask for no secrets, and that urls are safe. It searches for words, so its findings are
// hints.
func elicitCare(w *watch) {
	refused := map[string]int{} // by session, the entry in which the model's provider refused the agent's key
	w.On(func(ev *event) {
		if status, _ := ev.body.Get("status").Int(); status == http.StatusUnauthorized {
			rules.Remember(refused, rememberedSessions, ev.Session, ev.Seq)
		} else if ev.Kind == transcript.ModelChunk {
			delete(refused, ev.Session)
		}
	}, modelEvent)
	w.On(func(ev *event) { delete(refused, ev.Session) }, asked(prompt))
	w.On(func(ev *event) {
		p := ev.params
		if p.Get("mode").Is("form") {
			at := refused[ev.Session]
			w.judge("key", at > 0 && takesKey(p.Get("requestedSchema")), ev, "", []int{at},
				"The model's provider had refused the agent's key, and the agent asks for a new one in a form.")
			w.Saw("secret", "url-in-form")
			text := strings.ToLower(string(p.Get("message").Raw()) + string(p.Get("requestedSchema").Raw()))
			for _, word := range []string{"password", "passwort", "api key", "api_key", "apikey", "secret", "cvv",
				"credit card", "access token"} {
				if strings.Contains(text, word) {
					w.find("secret", ev, word, nil, "The form mentions %q; forms must not ask for secrets.", word)
					break
				}
			}
			if strings.Contains(text, "http://") || strings.Contains(text, "https://") {
				w.find("url-in-form", ev, "", nil, "The form contains a URL; links belong in url mode.")
			}
			return
		}
		target, err := url.Parse(p.Get("url").Str())
		if err != nil || target.Scheme == "" {
			return
		}
		w.Saw("credentials-in-url", "not-https")
		for key := range target.Query() {
			switch strings.ToLower(key) {
			case "access_token", "api_key", "apikey", "password", "token", "email":
				w.find("credentials-in-url", ev, key, nil, "The url of the elicitation contains the parameter %q.", key)
			}
		}
		if target.User != nil {
			w.find("credentials-in-url", ev, "user", nil, "The url of the elicitation contains a user name.")
		}
		if host := target.Hostname(); target.Scheme != "https" && host != "localhost" && host != "127.0.0.1" &&
			host != "::1" {
			w.find("not-https", ev, "", nil, "The url of the elicitation is %s, not https.", clip(target.Scheme))
		}
	}, asked(elicit))
}

// keyWords matches the name, title and description of a field for a key. notKey matches those of a field that only
// says where a key is, or how many tokens there may be.
var (
	keyWords = lazy.Regexp(`(?i)\b(api[ _-]?)?key\b|\btoken\b|credential|password|secret`)
	notKey   = lazy.Regexp(`(?i)variable|file|path|folder|entry|name|number|max|count|\burl\b`)
)

// takesKey reports whether a form has a field of free text for a key.
func takesKey(form wire.Value) bool {
	for name, field := range form.Get("properties").Members() {
		said := name + " " + field.Get("title").Str() + " " + field.Get("description").Str()
		free := field.Get("type").Is("string") && !field.Get("enum").Exists() && !field.Get("oneOf").Exists()
		if free && keyWords().MatchString(said) && !notKey().MatchString(said) {
			return true
		}
	}
	return false
}
