package schema

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

// Severity says how much damage a problem does.
type Severity uint8

// These are the severities, the worst first.
const (
	// Fatal: strict readers drop the whole message.
	Fatal Severity = iota
	// Lossy: strict readers keep the message and silently lose the value.
	Lossy
	// Unknown: a key, method or value that the protocol does not have.
	Unknown
	// Unstable: a part that only the unstable schema has, or a fault in such a part.
	Unstable
	// Style: no damage, but some readers or people may be confused.
	Style
)

// String names the severity in lower case.
func (s Severity) String() string {
	return [...]string{"fatal", "lossy", "unknown", "unstable", "style"}[min(s, Style)]
}

// Problem is one mistake in a frame.
type Problem struct {
	Severity Severity
	// Path leads from the frame to the value or to the missing or unknown key,
	// such as "params.update.content.type"; array positions are numbers.
	Path string
	// Message says what is wrong there, such as `must be a string, is null`.
	Message string
	// Type is the innermost named type of the schema that the value breaks.
	Type string
}

// String returns path and message as one line.
func (p Problem) String() string { return p.Path + ": " + p.Message }

// Check calls report for each mistake in the shape of a frame. For a response, answered is the method of the request;
// if it is "", the result is not checked. Check does not allocate memory if it finds no mistake.
//
// Malformed frames have no shape. Neither do extensions, whose methods begin with "_".
func (v *Version) Check(d Direction, f wire.Frame, answered string, report func(Problem)) {
	w := walk{report: report}
	if f.Extra.Exists() && f.Kind != wire.Malformed {
		w.report(Problem{Unknown, f.Extra.Str(), "is no member of a JSON-RPC message", ""})
	}
	switch f.Kind {
	case wire.Request, wire.Notification:
		v.checkCall(&w, d, f)
	case wire.Response:
		v.checkAnswer(&w, f, answered)
	}
}

// CheckType checks a value as a type of the schema. Paths begin at the value. If no type has the name, nothing is
// reported.
func (v *Version) CheckType(typeName string, value wire.Value, report func(Problem)) {
	if s := v.shapes[typeName]; s != nil {
		w := walk{report: report, root: value}
		w.check(ref{shape: s}, value, Fatal, s, tags{})
	}
}

func (v *Version) checkCall(w *walk, d Direction, f wire.Frame) {
	w.root, w.prefix = f.Params, "params"
	if f.Kind == wire.Request {
		w.id(f.ID)
	}
	m := v.methods[f.Method]
	if m == nil {
		v.unknownMethod(w, f.Method)
		return
	}
	sev := Fatal
	if !m.Stable {
		sev = Unstable
		w.say(Unstable, "method", "is a method of the unstable schema", m.Params)
	}
	switch {
	case m.Direction&d == 0:
		w.say(sev, "method", f.Method+" is sent "+m.Direction.String()+", not "+d.String(), m.Params)
		return
	case f.Kind == wire.Request && !m.Request:
		w.say(sev, "id", f.Method+" is a notification and has no id", m.Params)
	case f.Kind == wire.Notification && !m.Notification:
		w.say(sev, "id", f.Method+" is a request and needs an id", m.Params)
	}
	if f.Kind == wire.Request && f.ID == "null" {
		w.say(Style, "id", "is null, which JSON-RPC discourages in a request", "RequestId")
	}
	switch {
	case f.Params.Exists() && !f.Params.IsNull():
		w.check(m.params, f.Params, sev, m.params.shape, tags{})
	case m.params.kind == record && m.params.required == 0, m.params.kind == anyObject:
		if f.Params.IsNull() {
			w.say(Style, "params", "is null, but should be an object or be omitted", m.Params)
		}
	case f.Params.IsNull():
		w.say(sev, "params", "is null, must be an object", m.Params)
	default:
		w.say(sev, "params", "is missing", m.Params)
	}
}

// unknownMethod reports a method that is neither known nor an extension.
func (v *Version) unknownMethod(w *walk, name string) {
	switch {
	case strings.HasPrefix(name, "_"):
	case strings.HasPrefix(name, "$/"):
		w.say(Unknown, "method",
			wire.Quote(name)+" is not known; names that begin with $/ are reserved for the protocol itself", "")
	default:
		w.say(Unknown, "method",
			wire.Quote(name)+" is not known"+meant(closest(name, v.order))+"; methods of an extension begin with _", "")
	}
}

func (v *Version) checkAnswer(w *walk, f wire.Frame, answered string) {
	w.id(f.ID)
	if f.Error.Exists() {
		w.root, w.prefix = f.Error, "error"
		s := v.shapes["Error"]
		w.check(ref{shape: s}, f.Error, Fatal, s, tags{})
		v.reservedCode(w, f.Error.Get("code"))
		return
	}
	m := v.methods[answered]
	if m == nil || !m.Request {
		return
	}
	w.root, w.prefix = f.Result, "result"
	sev := Fatal
	if !m.Stable {
		sev = Unstable
	}
	if m.result.nullSeen && f.Result.IsNull() {
		w.say(Style, "result", "is null, as in an example of the specification; the schema wants an object", m.Result)
		return
	}
	w.check(m.result, f.Result, sev, m.result.shape, tags{})
}

// reservedCode reports an error code that JSON-RPC reserves without giving it a
// meaning (JSON-RPC 2.0, section 5.1).
func (v *Version) reservedCode(w *walk, value wire.Value) {
	if code, ok := value.Int(); ok && code >= -32768 && code < -32099 && v.ErrorMeaning(int(code)) == "" {
		w.say(Style, "error.code", string(value.Raw())+" is a reserved code without a meaning in JSON-RPC", "ErrorCode")
	}
}

// walk is the state of checking one frame.
type walk struct {
	report func(Problem) // if nil, mistakes are only counted
	root   wire.Value    // value at which paths begin
	prefix string        // beginning of all paths
	bad    int           // number of mistakes so far
}

// say reports a problem at a path that begins at the frame.
func (w *walk) say(sev Severity, path, message, typeName string) {
	w.report(Problem{sev, path, message, typeName})
}

// at reports a problem with a value or, if key is not "", with the member key of the value.
func (w *walk) at(sev Severity, v wire.Value, key, message string, s *shape) {
	inner, _ := w.root.PathTo(v)
	steps := slices.DeleteFunc([]string{w.prefix, inner, key}, func(step string) bool { return step == "" })
	w.report(Problem{sev, strings.Join(steps, "."), message, s.name})
}

func (w *walk) id(id wire.ID) {
	if id == "" || id[0] == '"' || id == "null" {
		return
	}
	if !inRange([]byte(id), "-9223372036854775808", "9223372036854775807") {
		w.say(Fatal, "id", wire.Clip(string(id), 60)+" does not fit into 64 bits", "RequestId")
	}
}

// inRange reports whether low <= n <= high. All three are whole numbers in decimal JSON notation.
func inRange(n []byte, low, high string) bool {
	switch {
	case string(n) == "-0", string(n) == "0":
		return low != "1"
	case n[0] == '-':
		return low[0] == '-' && !longer(n[1:], low[1:])
	}
	return !longer(n, high)
}

// longer reports whether n > bound, for decimal digits without leading zeros.
func longer(n []byte, bound string) bool {
	return cmp.Or(cmp.Compare(len(n), len(bound)), bytes.Compare(n, []byte(bound))) > 0
}
