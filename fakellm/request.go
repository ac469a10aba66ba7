package fakellm

import (
	"net/url"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// role says who produced an item of a conversation.
type role uint8

const (
	roleUser role = iota
	roleModel
	roleResult // a tool produced it
)

// item is one part of the conversation in a request.
type item struct {
	role    role
	message int // index of the item's message, from 0
	text    string
	// calls is true if the item is a tool call; call is then the call's id. In a result, call is the id of the call
	// that the result belongs to. "" means that the request has no id.
	calls bool
	call  string
	name  string // name of the called tool
}

type offer struct {
	name   string
	custom bool // takes a text instead of JSON (OpenAI's custom tools)
	schema wire.Value
	// namespace is the prefix of name that a call sends in a separate member (OpenAI's Responses).
	namespace string
}

// request is a model request in a form that is independent of the wire format. Its values may point into doc.
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
	message  int // index of the message being read
	tools    []offer
	schema   wire.Value // JSON schema of the wanted output; Missing if there is none
	wantJSON bool
	forced   string // name of the tool that the model must call
	previous string // id of the response that this request continues

	includeUsage bool   // Chat Completions: the client wants a chunk with the usage
	array        bool   // Gemini: the stream is a JSON array instead of SSE
	instructions string // Responses: repeated in the response
}

func (r *request) add(who role, text string) {
	r.items = append(r.items, item{role: who, message: r.message, text: text})
}

// addCall adds a tool call to the conversation, and addResult adds the result of a call.
func (r *request) addCall(id, name, args string) {
	r.items = append(r.items, item{role: roleModel, message: r.message, text: args, calls: true, call: id, name: name})
}

func (r *request) addResult(id, text string) {
	r.items = append(r.items, item{role: roleResult, message: r.message, text: text, call: id})
}

// parse fills the request from its body, route and query.
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

// toolNames returns the names of the offered tools, in the order of the request.
func (r *request) toolNames() []string {
	return lists.Map(r.tools, func(t offer) string { return t.name })
}

// lastRun joins, with line breaks, the texts of the last run of items with the given role that ends before item end.
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

// results returns the texts of the tool results after the model's last reply.
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

// stepsAfter counts the model's replies from item i on. Adjacent items of the model count as one reply.
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

// turns returns the number of the user's turns, and the index of the item with which the newest turn begins. A turn
// is a run of items between two replies of the model that contains text of the user and no tool result.
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

// problem is an error that the server sends in the API's form.
type problem struct {
	status  int
	kind    string // the API's name for the error; "" derives it from the status
	code    string
	message string
}

func (p *problem) Error() string { return p.message }
