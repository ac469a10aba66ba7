package invariants

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// rootKeys reports keys, methods and kinds of updates that the schema does not define. Extensions belong in _meta or
// have a name that begins with an underscore.
func rootKeys(w *watch) {
	w.shapes[rules.OfAgent], w.shapes[rules.OfClient] = true, true
	news, protocol, saw := schema.LatestNews(), fmt.Sprint("acp-v", w.version.number), w.Seeing("unknown-key")
	w.On(func(ev *event) {
		for _, p := range ev.problems {
			ev.conn.novel = ev.conn.novel || newCapability(p)
		}
	}, asked(initialize), answered(initialize))
	w.On(func(ev *event) {
		saw()
		if ev.Method != "" && ev.ID == "" || ev.params.Exists() {
			w.Saw("unknown-method")
		}
		if isUpdate(ev.topic) {
			w.Saw("unknown-update")
		}
		if bytes.Contains(ev.Raw, []byte(`"_meta"`)) {
			w.Saw("meta")
			if bytes.Contains(ev.Raw, []byte(`"traceparent"`)) {
				w.trace(ev)
			}
		}
		for _, p := range ev.problems {
			w.key(ev, p, news.Touching(protocol, part(ev, p)))
		}
	}, agentMessages()...)
}

// traceparent matches a value of W3C Trace Context.
var traceparent = lazy.Regexp(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$`)

// trace checks the format of traceparent in the message's _meta, which is reserved for W3C Trace Context.
func (w *watch) trace(ev *event) {
	for _, holder := range []wire.Value{ev.params, ev.update, ev.result} {
		if own := holder.Get("_meta").Get("traceparent"); own.Exists() {
			w.judge("trace", !traceparent().MatchString(own.Str()), ev, ev.Method, nil,
				"The traceparent in _meta is %s, not VERSION-TRACEID-PARENTID-FLAGS in lowercase hexadecimal digits.",
				clip(own.Text()))
		}
	}
}

// key reports the point that a schema problem breaks. draft is the entry of the schema news about the faulty part, or
// nil.
func (w *watch) key(ev *event, p schema.Problem, draft *schema.Feature) {
	name := frameName(ev)
	object := p.Type + " " + p.Path[strings.LastIndexByte(p.Path, '.')+1:]
	switch {
	case p.Severity == schema.Unstable && draft.Is("withdrawn"):
		w.find("withdrawn", ev, object, nil, "In %s, %s is part of a draft that was withdrawn on %s: %s.", name, p.Path,
			draft.Date, draft.Name)
	case newerThanThis(ev, p):
		w.find("newer", ev, object, nil, "In %s, %s is newer than this program knows: update acp-test.", name, p.Path)
	case isMeta(p):
		w.find("meta", ev, object, nil, "In %s, %s %s.", name, p.Path, p.Message)
	case unknownTag(ev, p) && p.Severity <= schema.Lossy:
		kind := clip(ev.update.Get("sessionUpdate").Str())
		w.find("unknown-update", ev, kind, nil,
			"session/update has no kind %q; use an extension notification instead.", kind)
	case p.Severity == schema.Unstable:
		w.find("unstable", ev, object, nil, "In %s, %s %s.", name, p.Path, p.Message)
	case p.Severity == schema.Unknown:
		w.unknown(ev, p, object)
	}
}

// unknown reports a method, a key or a value that the schema does not define.
func (w *watch) unknown(ev *event, p schema.Problem, object string) {
	switch {
	case p.Path == "method":
		w.find("unknown-method", ev, ev.Method, nil, "The agent's method %s.", p.Message)
	case strings.Contains(p.Message, "unknown key") || strings.Contains(p.Message, "is no member"):
		if terminalLogin(ev, p) {
			return
		}
		f := w.find("unknown-key", ev, object, nil, "In %s, %s: %s.", frameName(ev), p.Path, p.Message)
		w.Narrow(f, extension(p.Type)...)
	default:
		w.find(valuePoint(ev, p), ev, object, nil, "In %s, %s %s.", frameName(ev), p.Path, p.Message)
	}
}

// valuePoint returns the point that an unknown value breaks. A connection on which a side advertised an unknown
// capability may have values of a newer version of the protocol.
func valuePoint(ev *event, p schema.Problem) string {
	switch {
	case ev.conn.novel:
		return "unknown-value"
	case p.Type == "SessionConfigOptionCategory":
		return "category"
	case strings.Contains(p.Type, "Elicitation"):
		return "elicitation"
	}
	return "unknown-value"
}

// part returns the name that the schema news use for the subject of a problem: a method or TYPE.KEY.
func part(ev *event, p schema.Problem) string {
	if p.Path == "method" {
		return ev.Method
	}
	return p.Type + "." + p.Path[strings.LastIndexByte(p.Path, '.')+1:]
}

// minted matches names that the protocol itself may use: words without a vendor's prefix.
var minted = lazy.Regexp(`^[a-z][A-Za-z_]+$`)

// newCapability reports whether an unknown key may be a capability from a newer version of the protocol. A key that
// resembles a known key counts as a misspelling.
func newCapability(p schema.Problem) bool {
	return p.Severity == schema.Unknown && p.Message == "unknown key" && strings.HasSuffix(p.Type, "Capabilities") &&
		minted().MatchString(p.Path[strings.LastIndexByte(p.Path, '.')+1:])
}

// newerThanThis reports whether an unknown part may come from a newer version of the protocol. New updates and keys
// come with a capability, so they count only if a side advertised an unknown capability.
func newerThanThis(ev *event, p schema.Problem) bool {
	if newCapability(p) {
		return true
	}
	unknown := p.Severity == schema.Unknown && p.Message == "unknown key" || unknownTag(ev, p)
	return unknown && ev.conn.novel && minted().MatchString(pick(unknownTag(ev, p), ev.tag(),
		p.Path[strings.LastIndexByte(p.Path, '.')+1:]))
}

// ownResults maps a result type to the requirement that restricts its additional keys.
var ownResults = map[string]string{
	"PromptResponse": "PROMPT-022", "SessionInfoUpdate": "INFO-002", "NewSessionResponse": "SESSION-003",
	"AuthenticateResponse": "AUTH-006", "LogoutResponse": "AUTH-011", "CloseSessionResponse": "CLOSE-004",
	"DeleteSessionResponse": "DELETE-002", "SetSessionModeResponse": "MODE-005",
}

// extension returns the requirements that an additional key breaks in an object of the named type.
func extension(typeName string) []string {
	return append([]string{"EXT-001"}, strings.Fields(ownResults[typeName])...)
}
