package fakellm

import (
	"slices"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/wire"
)

// OpenAIResponses is the name of OpenAI's Responses API.
const OpenAIResponses = "openai-responses"

// responses is OpenAI's Responses API: how it asks.
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

// offers reads tools; those of a namespace have its name before their own.
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

// input reads one item of the input.
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
	case strings.HasSuffix(kind, "_call_output"):
		r.addResult(it.Get("call_id").Str(), joined(it.Get("output")))
	case strings.HasSuffix(kind, "_call") && it.Get("call_id").Exists():
		r.addCall(it.Get("call_id").Str(), it.Get("name").Str(), it.Get("arguments").Str()+it.Get("input").Str())
	case strings.HasSuffix(kind, "_call"): // of a tool of the provider's
		r.add(roleModel, "")
	case kind == "reasoning":
		// Reasoning alone is no reply: a reply that was cut off in it is
		// asked for again.
	case kind == "additional_tools":
		r.offers(it.Get("tools"), "")
	}
}

// chains are the responses that may be gone on from, each with all that was
// said up to it.
type chains struct {
	mu    sync.Mutex
	items map[string][]item
}

// goOn puts what came before previous_response_id in front of the request.
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

// keep remembers a response for those that go on from it, with the tool calls that it makes.
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
