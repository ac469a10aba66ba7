package invariants

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/rules"
)

// rootKeys judges what the schema does not know: keys, methods and kinds of
// updates. Extensions have their places, in _meta and behind an underscore.
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
		}
		for _, p := range ev.problems {
			w.key(ev, p, news.Touching(protocol, part(ev, p)))
		}
	}, agentMessages()...)
}

// key reports what a problem with a message breaks. draft is the news about its part.
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
			"There is no kind of session/update %q; a notification of an extension would be legal.", kind)
	case p.Severity == schema.Unstable:
		w.find("unstable", ev, object, nil, "In %s, %s %s.", name, p.Path, p.Message)
	case p.Severity == schema.Unknown:
		w.unknown(ev, p, object)
	}
}

// unknown reports a method, a key or a value that the schema does not know.
func (w *watch) unknown(ev *event, p schema.Problem, object string) {
	switch {
	case p.Path == "method":
		w.find("unknown-method", ev, ev.Method, nil, "The agent's method %s.", p.Message)
	case strings.Contains(p.Message, "unknown key") || strings.Contains(p.Message, "is no member"):
		if p.Type == "AuthMethodTerminal" && strings.HasSuffix(p.Path, ".command") {
			return // AUTH-METHODS
		}
		f := w.find("unknown-key", ev, object, nil, "In %s, %s: %s.", frameName(ev), p.Path, p.Message)
		w.Narrow(f, extension(p.Type)...)
	default:
		w.find("unknown-value", ev, object, nil, "In %s, %s %s.", frameName(ev), p.Path, p.Message)
	}
}

// part names what a problem is about as the news do: a method, TYPE.KEY or TYPE=VALUE.
func part(ev *event, p schema.Problem) string {
	if p.Path == "method" {
		return ev.Method
	}
	return p.Type + "." + p.Path[strings.LastIndexByte(p.Path, '.')+1:]
}

// minted is a name as the protocol makes them: words without the sign of a vendor.
var minted = lazy.Regexp(`^[a-z][A-Za-z_]+$`)

// newCapability reports whether an unknown key is a capability that a newer version of the
// protocol may have: its objects of capabilities grow by keys. One that is close to a known
// key is a slip.
func newCapability(p schema.Problem) bool {
	return p.Severity == schema.Unknown && p.Message == "unknown key" && strings.HasSuffix(p.Type, "Capabilities") &&
		minted().MatchString(p.Path[strings.LastIndexByte(p.Path, '.')+1:])
}

// newerThanThis reports whether a newer version of the protocol may have what is unknown here.
// Kinds of updates and keys come with a capability, so that they count as newer only where a
// side advertises one that is unknown too; elsewhere they are inventions.
func newerThanThis(ev *event, p schema.Problem) bool {
	if newCapability(p) {
		return true
	}
	unknown := p.Severity == schema.Unknown && p.Message == "unknown key" || unknownTag(ev, p)
	return unknown && ev.conn.novel && minted().MatchString(pick(unknownTag(ev, p), ev.tag(),
		p.Path[strings.LastIndexByte(p.Path, '.')+1:]))
}

// ownResults has the requirements about further keys in the results of some methods, by their types.
var ownResults = map[string]string{
	"PromptResponse": "PROMPT-022", "SessionInfoUpdate": "INFO-002", "NewSessionResponse": "SESSION-003",
	"AuthenticateResponse": "AUTH-006", "LogoutResponse": "AUTH-011", "CloseSessionResponse": "CLOSE-004",
	"DeleteSessionResponse": "DELETE-002", "SetSessionModeResponse": "MODE-005",
}

// extension are the requirements that a key of its own breaks in an object of a type.
func extension(typeName string) []string {
	return append([]string{"EXT-001"}, strings.Fields(ownResults[typeName])...)
}
