package fakellm

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// OpenAIResponses is the name of OpenAI's Responses API.
const OpenAIResponses = "openai-responses"

// responses implements the wire format of OpenAI's Responses API.
type responses struct{ openai }

func (responses) name() string { return OpenAIResponses }
func (responses) encoder(r *request, a *answer) encoder {
	return &responsesEncoder{r: r, a: a, at: make([]int, len(a.blocks))}
}

func (responses) parse(r *request, v wire.Value) *problem {
	input := v.Get("input")
	r.stream, _ = v.Get("stream").Bool()
	r.previous = v.Get("previous_response_id").Str()
	if s := v.Get("instructions"); s.Kind() == wire.String {
		r.instructions = s.Str()
		r.system = append(r.system, r.instructions)
	}
	r.offers(v.Get("tools"), "")
	switch input.Kind() {
	case wire.String:
		r.add(roleUser, input.Str())
	case wire.Array:
		for it := range input.Items() {
			r.input(it)
			r.message++
		}
	default:
		return &problem{status: 400, code: "missing_required_parameter", message: "Missing required parameter: 'input'."}
	}
	formatWanted(r, v.Path("text.format"))
	if name := v.Path("tool_choice.name"); name.Exists() {
		forcedTool(r, name.Str())
	}
	return nil
}

func (responses) endpoint(path string) (route, bool) {
	return route{task: taskGenerate}, path == "/responses"
}

// offers reads the offered tools. The name of a tool in a namespace gets the namespace's name as a prefix.
func (r *request) offers(tools wire.Value, prefix string) {
	for t := range tools.Items() {
		name := t.Get("name").Str()
		switch kind := t.Get("type").Str(); {
		case kind == "namespace":
			r.offers(t.Get("tools"), name)
		case name != "":
			r.tools = append(r.tools, offer{prefix + name, kind == "custom", t.Get("parameters"), prefix})
		case kind == "local_shell":
			r.tools = append(r.tools, offer{name: kind})
		}
	}
}

// input adds one item of the request's input to the conversation.
func (r *request) input(it wire.Value) {
	kind := it.Get("type").Str()
	switch {
	case kind == "" || kind == "message":
		content := joined(it.Get("content"))
		switch it.Get("role").Str() {
		case "system", "developer":
			r.system = append(r.system, content)
		case "assistant":
			r.add(roleModel, content)
		default:
			r.add(roleUser, content)
		}
	case kind == "agent_message": // a message from another agent, all of which the model reads
		text := ""
		for part := range it.Get("content").Items() {
			text += part.Get("text").Str() + part.Get("encrypted_content").Str()
		}
		r.add(roleUser, text)
	case strings.HasSuffix(kind, "_call_output"):
		r.addResult(it.Get("call_id").Str(), joined(it.Get("output")))
	case strings.HasSuffix(kind, "_call") && it.Get("call_id").Exists():
		r.addCall(it.Get("call_id").Str(), it.Get("name").Str(), it.Get("arguments").Str()+it.Get("input").Str())
	case strings.HasSuffix(kind, "_call"): // a call of one of the provider's tools
		r.add(roleModel, "")
	case kind == "reasoning":
		// Reasoning alone is not a reply: if the previous reply was cut off after its reasoning, the agent sends the
		// request again.
	case kind == "additional_tools":
		r.offers(it.Get("tools"), "")
	}
}

// chains stores the conversations that a later request may continue, by the id of the last response in each.
type chains struct {
	mu    sync.Mutex
	items map[string][]item
}

// goOn inserts the conversation that ends with previous_response_id before the items of the request.
func (c *chains) goOn(r *request) *problem {
	if r.previous == "" {
		return nil
	}
	c.mu.Lock()
	before, ok := c.items[r.run+" "+r.previous]
	c.mu.Unlock()
	if !ok {
		return &problem{status: 400, code: "previous_response_not_found", message: "Previous response with id '" +
			r.previous + "' not found."}
	}
	r.items = slices.Concat(before, r.items)
	return nil
}

// keep stores the conversation including a response and its tool calls, for requests that continue it.
func (c *chains) keep(r *request, id string, calls ...item) {
	items := slices.Concat(r.items, []item{{role: roleModel}}, calls)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items == nil {
		c.items = map[string][]item{}
	}
	c.items[r.run+" "+id] = items
}

func (r responses) readEvent(h *said, v wire.Value) {
	key := v.Get("item_id").Str()
	switch v.Get("type").Str() {
	case "response.output_text.delta":
		h.say(StepText, v.Get("delta").Str())
	case "response.refusal.delta":
		h.say(StepRefusal, v.Get("delta").Str())
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		h.say(StepThinking, v.Get("delta").Str())
	case "response.output_item.added":
		if it := v.Get("item"); it.Get("name").Exists() {
			h.tool(it.Get("id").Str(), it.Get("name").Str())
		}
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		h.args(key, v.Get("delta").Str())
	case "response.completed", "response.incomplete":
		r.readEnd(h, v.Get("response"))
	}
}

func (responses) readEnd(h *said, v wire.Value) {
	switch {
	case v.Path("incomplete_details.reason").Is("max_output_tokens"):
		h.end(StopLength)
	case v.Get("status").Is("incomplete"):
		h.end(StopRefusal)
	default:
		h.end(StopAuto)
	}
	h.spent(v.Get("usage"), "input_tokens", "output_tokens", "input_tokens_details.cached_tokens",
		"output_tokens_details.reasoning_tokens")
}

func (r responses) readBody(h *said, v wire.Value) {
	for it := range v.Get("output").Items() {
		switch {
		case it.Get("type").Is("reasoning"):
			for part := range it.Get("summary").Items() {
				h.say(StepThinking, part.Get("text").Str())
			}
		case it.Get("type").Is("message"):
			for part := range it.Get("content").Items() {
				h.say(StepText, part.Get("text").Str())
				h.say(StepRefusal, part.Get("refusal").Str())
			}
		case it.Get("name").Exists():
			key := it.Get("id").Str()
			h.tool(key, it.Get("name").Str())
			h.args(key, it.Get("arguments").Str()+it.Get("input").Str())
		}
	}
	r.readEnd(h, v)
}

// responsesEncoder writes answers in the format of the Responses API. Adjacent texts and refusals are parts of one
// message.
type responsesEncoder struct {
	r   *request
	a   *answer
	seq int
	at  []int // output index of each block that has begun
	n   int   // number of output items that have begun
	around
}

func (*responsesEncoder) contentType() string { return sse }

// begin appends the beginning of an event: its name, type and sequence number.
func (e *responsesEncoder) begin(b []byte, name string) []byte {
	b = append(append(append(b, "event: "...), name...), "\ndata: {\"type\":\""...)
	b = append(append(b, name...), `","sequence_number":`...)
	e.seq++
	return strconv.AppendInt(b, int64(e.seq-1), 10)
}

// named appends an event. rest is a template of the members after the sequence number.
func (e *responsesEncoder) named(b []byte, name, rest string, values ...any) []byte {
	return append(template(e.begin(b, name), rest, values...), "}\n\n"...)
}

func (e *responsesEncoder) open(b []byte) []byte {
	b = e.state(b, "created", "in_progress", nil)
	return e.state(b, "in_progress", "in_progress", nil)
}

// state appends an event with the current state of the response.
func (e *responsesEncoder) state(b []byte, event, status string, failure *problem) []byte {
	return e.named(b, "response."+event, `,"response":?`,
		func(b []byte) []byte { return e.response(b, status, failure) })
}

// response appends a response object. Its member "output" is complete only after the response has ended.
func (e *responsesEncoder) response(b []byte, status string, failure *problem) []byte {
	var reported, incomplete, usage any
	if failure != nil {
		names := map[int]string{429: "rate_limit_exceeded", 500: "server_error"}
		reported = object{{"code", errorKind(failure, names, "server_error")}, {"message", failure.message}}
	}
	if status == "incomplete" {
		incomplete = object{{"reason", "content_filter"}}
		if e.a.stop == StopLength {
			incomplete = object{{"reason", "max_output_tokens"}}
		}
	}
	var output []block
	if status == "completed" || status == "incomplete" {
		output = lists.Where(e.a.blocks, func(bl block) bool { return bl.part == 0 })
		u := e.a.usage
		usage = object{
			{"input_tokens", u.Input}, {"input_tokens_details", object{{"cached_tokens", u.Cached}}},
			{"output_tokens", u.Output}, {"output_tokens_details", object{{"reasoning_tokens", u.Reasoning}}},
			{"total_tokens", u.Input + u.Output},
		}
	}
	return template(b, `{"id":?,"object":"response","created_at":?,"status":?,"background":false,"error":?,`+
		`"incomplete_details":?,"instructions":?,"max_output_tokens":null,"model":?,"output":?,`+
		`"parallel_tool_calls":true,"previous_response_id":?,"reasoning":{"effort":null,"summary":null},"store":true,`+
		`"temperature":1,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1,`+
		`"truncation":"disabled","usage":?,"user":null,"metadata":{}}`,
		"resp_"+e.a.id, created, status, reported, incomplete, textOr(e.r.instructions), e.a.model,
		lists.Map(output, func(bl block) any { return e.item(&bl, true) }), textOr(e.r.previous), usage)
}

// itemID returns the id of an output item.
func (e *responsesEncoder) itemID(bl *block) string {
	prefix := "msg_"
	switch {
	case bl.kind == StepThinking:
		prefix = "rs_"
	case bl.kind == StepTool && bl.call.custom:
		prefix = "ctc_"
	case bl.kind == StepTool:
		prefix = "fc_"
	}
	return prefix + e.a.id + "i" + strconv.Itoa(bl.message+1)
}

// item renders an output item. If full is false, it renders the item as just begun, without content.
func (e *responsesEncoder) item(bl *block, full bool) object {
	text, status := "", "in_progress"
	if full {
		text, status = bl.text, "completed"
		if e.a.stop == StopLength && bl.message == e.a.blocks[len(e.a.blocks)-1].message {
			status = "incomplete"
		}
	}
	parts := lists.Where(e.a.blocks, func(x block) bool { return full && x.message == bl.message })
	content := lists.Map(parts, func(x block) any { return contentPart(&x, x.text) })
	switch bl.kind {
	case StepThinking:
		return object{{"id", e.itemID(bl)}, {"type", "reasoning"}, {"summary", content}}
	case StepTool:
		kind, input := "function_call", "arguments"
		if bl.call.custom {
			kind, input = "custom_tool_call", "input"
		}
		call := object{{"id", e.itemID(bl)}, {"type", kind}, {"status", status}, {"call_id", "call_" + bl.id},
			{"name", strings.TrimPrefix(bl.call.name, bl.call.namespace)}}
		if bl.call.namespace != "" {
			call = append(call, member{"namespace", bl.call.namespace})
		}
		return append(call, member{input, text})
	}
	return object{{"id", e.itemID(bl)}, {"type", "message"}, {"status", status}, {"role", "assistant"},
		{"content", content}}
}

// contentPart renders a content part of a message, or a part of a reasoning summary.
func contentPart(bl *block, text string) object {
	switch bl.kind {
	case StepThinking:
		return object{{"type", "summary_text"}, {"text", text}}
	case StepRefusal:
		return object{{"type", "refusal"}, {"refusal", text}}
	}
	return object{{"type", "output_text"}, {"annotations", []any{}}, {"logprobs", []any{}}, {"text", text}}
}

// ref renders the members that identify the item and the part to which an event belongs.
func (e *responsesEncoder) ref(bl *block) json.RawMessage {
	b := template(nil, `,"item_id":?,"output_index":?`, e.itemID(bl), e.at[bl.message])
	switch bl.kind {
	case StepThinking:
		return append(b, `,"summary_index":0`...)
	case StepText, StepRefusal:
		return template(b, `,"content_index":?`, bl.part)
	}
	return b
}

func (e *responsesEncoder) wrap(b []byte, name string, bl *block, full bool) []byte {
	return e.named(b, name, `,"output_index":?,"item":?`, e.at[bl.message], e.item(bl, full))
}

func (e *responsesEncoder) start(b []byte, bl *block) []byte {
	if bl.part == 0 {
		e.at[bl.index] = e.n
		e.n++
		b = e.wrap(b, "response.output_item.added", bl, false)
	}
	if name := partEvent(bl.kind); name != "" {
		b = e.named(b, name+".added", `?,"part":?`, e.ref(bl), contentPart(bl, ""))
	}
	return b
}

func partEvent(kind StepKind) string {
	switch kind {
	case StepThinking:
		return "response.reasoning_summary_part"
	case StepTool:
		return ""
	}
	return "response.content_part"
}

// deltaEvent returns the name of the events with a block's content, without the ending .delta or .done. whole is the
// name of the member of the .done event that contains the complete content.
func deltaEvent(bl *block) (name, whole string) {
	switch {
	case bl.kind == StepThinking:
		return "response.reasoning_summary_text", "text"
	case bl.kind == StepRefusal:
		return "response.refusal", "refusal"
	case bl.kind == StepTool && bl.call.custom:
		return "response.custom_tool_call_input", "input"
	case bl.kind == StepTool:
		return "response.function_call_arguments", "arguments"
	}
	return "response.output_text", "text"
}

func (e *responsesEncoder) piece(b []byte, bl *block, s string) []byte {
	name, _ := deltaEvent(bl)
	return e.around.piece(e.begin(b, name+".delta"), bl, s, func() []byte {
		return template(nil, `?,"delta":??}`+"\n\n", e.ref(bl), hole, logprobs(bl))
	})
}

// logprobs renders the member logprobs for events of a text, and nothing for other blocks.
func logprobs(bl *block) json.RawMessage {
	if bl.kind == StepText {
		return json.RawMessage(`,"logprobs":[]`)
	}
	return nil
}

func (e *responsesEncoder) end(b []byte, bl *block) []byte {
	name, whole := deltaEvent(bl)
	more := logprobs(bl)
	if bl.kind == StepTool {
		more = template(nil, `,"name":?`, strings.TrimPrefix(bl.call.name, bl.call.namespace))
	}
	b = e.named(b, name+".done", `?,?:??`, e.ref(bl), whole, bl.text, more)
	if name := partEvent(bl.kind); name != "" {
		b = e.named(b, name+".done", `?,"part":?`, e.ref(bl), contentPart(bl, bl.text))
	}
	if next := bl.index + 1; next < len(e.a.blocks) && e.a.blocks[next].message == bl.message {
		return b
	}
	return e.wrap(b, "response.output_item.done", bl, true)
}

// status returns the final status of the response. A refusal with a text is "completed"; a refusal without a text is
// "incomplete", as after a content filter.
func (e *responsesEncoder) status() string {
	inWords := slices.ContainsFunc(e.a.blocks, func(bl block) bool { return bl.kind == StepRefusal })
	if e.a.stop == StopLength || e.a.stop == StopRefusal && !inWords {
		return "incomplete"
	}
	return "completed"
}

func (e *responsesEncoder) close(b []byte) []byte {
	status := e.status()
	return e.state(b, status, status, nil)
}

func (e *responsesEncoder) fail(b []byte, p *problem) []byte {
	return e.state(b, "failed", "failed", p)
}

func (e *responsesEncoder) event(b []byte, s string) []byte {
	b = append(b, "event: response.output_text.delta\ndata: "...)
	return append(append(b, s...), "\n\n"...)
}

func (e *responsesEncoder) whole(b []byte) []byte { return e.response(b, e.status(), nil) }
