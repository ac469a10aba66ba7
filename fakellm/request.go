package fakellm

import (
	"net/url"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// role says which side a part of a conversation belongs to.
type role uint8

const (
	roleUser role = iota
	roleModel
	roleResult // the result of a tool
)

// item is a part of the conversation in a request, in order.
type item struct {
	role    role
	message int // the index of its message, from 0
	text    string
	// calls says that the item is a tool call. call is the id of that call, or of
	// the call that a result belongs to; "" if the request names none.
	calls bool
	call  string
	name  string // of the tool that is called
}

// offer is a tool the client offers.
type offer struct {
	name   string
	custom bool // takes a text, not JSON (OpenAI's custom tools)
	schema wire.Value
	// namespace is the beginning of name that a call carries in a separate member
	// (OpenAI's Responses).
	namespace string
}

// request is a model request in neutral form. It may point into doc.
type request struct {
	doc    wire.Doc
	body   wire.Value
	raw    []byte
	wire   string
	path   string
	run    string
	model  string
	stream bool

	system   []string
	items    []item
	message  int // index of the message that is read
	tools    []offer
	schema   wire.Value // the JSON schema wanted; Missing if none or any JSON
	wantJSON bool
	forced   string // the tool that must be called
	previous string // id of the response that this request continues

	includeUsage bool   // Chat Completions: a chunk with usage is wanted
	array        bool   // Gemini: a JSON array instead of SSE
	instructions string // Responses: echoed
}

func (r *request) add(who role, text string) {
	r.items = append(r.items, item{role: who, message: r.message, text: text})
}

// addCall adds a tool call by its name and arguments; addResult adds the result
// of a call.
func (r *request) addCall(id, name, args string) {
	r.items = append(r.items, item{role: roleModel, message: r.message, text: args, calls: true, call: id, name: name})
}

func (r *request) addResult(id, text string) {
	r.items = append(r.items, item{role: roleResult, message: r.message, text: text, call: id})
}

// parse reads a request from its body, path, route and query.
func (r *request) parse(raw []byte, rt route, query url.Values) *problem {
	if err := r.doc.Parse(raw); err != nil {
		return &problem{status: 400, message: "The body of the request is not valid JSON: " + err.Error()}
	}
	r.raw, r.body = raw, r.doc.Root()
	if r.body.Kind() != wire.Object {
		return &problem{status: 400, message: "The body of the request must be a JSON object."}
	}
	if r.model = rt.model; r.model == "" {
		r.model = r.body.Get("model").Str()
	}
	if r.model == "" {
		return &problem{status: 400, message: "model: you must provide a model parameter"}
	}
	if p := rt.format.parse(r, r.body); p != nil {
		return p
	}
	if rt.model != "" {
		r.stream = rt.stream
		r.array = query.Get("alt") != "sse"
	}
	return nil
}

func (r *request) systemText() string { return strings.Join(r.system, "\n") }

// toolNames returns the names of the tools on offer, in their order.
func (r *request) toolNames() []string {
	return lists.Map(r.tools, func(t offer) string { return t.name })
}

// lastRun joins the texts of the last run of items with the given role that
// ends before item end.
func (r *request) lastRun(who role, end int) string {
	for end > 0 && r.items[end-1].role != who {
		end--
	}
	from := end
	for from > 0 && r.items[from-1].role == who {
		from--
	}
	return strings.Join(lists.Map(r.items[from:end], func(it item) string { return it.text }), "\n")
}

// results returns the tool results since the last reply of the model.
func (r *request) results() (texts []string) {
	for _, it := range r.items {
		switch it.role {
		case roleModel:
			texts = texts[:0]
		case roleResult:
			texts = append(texts, it.text)
		}
	}
	return texts
}

// stepsAfter counts the replies of the model from item i on. Adjacent items of
// the model are one reply.
func (r *request) stepsAfter(i int) int {
	n, in := 0, false
	for _, it := range r.items[i:] {
		if it.role == roleModel && !in {
			n++
		}
		in = it.role == roleModel
	}
	return n
}

// turns returns the number of the user's turns, and the item where the newest
// begins. A turn is a run of items between two replies of the model that holds no
// tool result.
func (r *request) turns() (n, last int) {
	for i := 0; i < len(r.items); {
		from, user, result := i, false, false
		for ; i < len(r.items) && r.items[i].role != roleModel; i++ {
			user = user || r.items[i].role == roleUser
			result = result || r.items[i].role == roleResult
		}
		if user && !result {
			n, last = n+1, from
		}
		for ; i < len(r.items) && r.items[i].role == roleModel; i++ {
			continue
		}
	}
	return n, last
}

// problem is an error that the server answers in the form of the API.
type problem struct {
	status  int
	kind    string // "" derives it from the status
	code    string
	message string
}

func (p *problem) Error() string { return p.message }
