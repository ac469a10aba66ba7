package fakellm

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/wire"
)

// Patterns of the tool names that the APIs accept.
var (
	shortName = lazy.Regexp(`^[a-zA-Z0-9_-]{1,64}$`)
	longName  = lazy.Regexp(`^[a-zA-Z0-9_-]{1,128}$`)
)

// manners contains the rules of one API for the conversation in a request.
type manners struct {
	list    string // the member of a request with the messages
	message string // format of the API's name for the message with an index
	// joined means that adjacent messages of the same role count as one message. anywhere means that a call's result
	// may come at any point after the call; otherwise it must follow directly. counted means that calls and results
	// need no ids, and only their number must agree.
	joined, anywhere, counted bool
	tool                      *regexp.Regexp // pattern of tool names; nil for any
	topless                   bool           // a tool's schema must not have alternatives at its top
}

// refused returns the error with which the real API would refuse the conversation, or nil if it would accept it. The
// rules are from public reports and the vendors' documentation.
func (r *request) refused(f format) *problem {
	m := f.manners()
	if why := cmp.Or(r.unpaired(m), r.badTool(m), r.badMessage(f, m)); why != "" {
		return &problem{status: 400, message: why}
	}
	return nil
}

// unpaired describes a call without a result or a result without a call. It returns "" if every call has a result and
// every result a call.
func (r *request) unpaired(m manners) string {
	var open []item
	lacks := func() string {
		ids := lists.Map(open, func(it item) string { return fmt.Sprintf("%q", it.call) })
		return fmt.Sprintf("%s: no result follows the tool calls of this message: %s",
			fmt.Sprintf(m.message, open[0].message), strings.Join(ids, ", "))
	}
	for _, it := range r.items {
		switch {
		case it.calls:
			if len(open) > 0 && !m.anywhere && !m.joined && it.message != open[0].message {
				return lacks()
			}
			open = append(open, it)
		case it.role == roleResult:
			i := slices.IndexFunc(open, func(c item) bool { return c.call == it.call || m.counted && it.call == "" })
			if i < 0 {
				return fmt.Sprintf("%s: the result of %q belongs to no tool call before it", fmt.Sprintf(m.message, it.message),
					it.call)
			}
			open = slices.Delete(open, i, i+1)
		case len(open) == 0 || m.anywhere:
		case it.role == roleUser || it.message != open[0].message && !m.joined:
			return lacks()
		}
	}
	if len(open) > 0 {
		return lacks()
	}
	return ""
}

// badTool describes an offered tool that the API does not accept, or "" if the API accepts all of them.
func (r *request) badTool(m manners) string {
	names := map[string]bool{}
	for i, t := range r.tools {
		switch {
		case m.tool != nil && !m.tool.MatchString(t.name):
			return fmt.Sprintf("tools.%d: the name %q does not match %s", i, t.name, m.tool)
		case names[t.name] && t.namespace == "":
			return fmt.Sprintf("tools.%d: there is another tool with the name %q", i, t.name)
		case t.schema.Exists() && t.schema.Kind() != wire.Object && t.schema.Kind() != wire.Null:
			return fmt.Sprintf("tools.%d: the schema of %q is not an object", i, t.name)
		case m.topless && slices.ContainsFunc([]string{"oneOf", "allOf", "anyOf"},
			func(key string) bool { return t.schema.Get(key).Exists() }):
			return fmt.Sprintf("tools.%d: the schema of %q has oneOf, allOf or anyOf at its top", i, t.name)
		}
		names[t.name] = true
	}
	return ""
}

// badMessage names the first message that the API refuses, and the reason. It returns "" if the API accepts all
// messages.
func (r *request) badMessage(f format, m manners) string {
	list := r.body.Get(m.list)
	i, last := 0, list.Len()-1
	for message := range list.Items() {
		if why := f.refuses(message, i == 0, i == last); why != "" {
			return fmt.Sprintf(m.message, i) + ": " + why
		}
		i++
	}
	return ""
}

// badImages returns the result of badImage for the first bad image in the content. path is where each content part
// has its image URL. URLs other than base64 data URLs are ignored.
func badImages(content wire.Value, path string) string {
	for part := range content.Items() {
		kind, data, ok := strings.Cut(strings.TrimPrefix(part.Path(path).Str(), "data:"), ";base64,")
		if why := badImage(kind, data); ok && why != "" {
			return why
		}
	}
	return ""
}

// badImage returns the reason why an API refuses an image, or "" if the API accepts it.
func badImage(mediaType, data string) string {
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mediaType) {
		return fmt.Sprintf("images of type %q are not supported", mediaType)
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" {
		return "the data of the image is not valid base64"
	}
	return ""
}

func (chat) manners() manners {
	return manners{list: "messages", message: "messages.[%d]", tool: shortName()}
}

func (chat) refuses(m wire.Value, _, _ bool) string {
	content, calls := m.Get("content"), m.Get("tool_calls")
	switch {
	case calls.Kind() == wire.Array && calls.Len() == 0:
		return "tool_calls is empty; expected at least one"
	case m.Get("role").Is("assistant") && (!content.Exists() || content.Kind() == wire.Null) && calls.Len() == 0 &&
		!m.Get("refusal").Exists() && !m.Get("function_call").Exists() && !m.Get("audio").Exists():
		return "an assistant message must have content or tool_calls"
	}
	for c := range calls.Items() {
		if args := c.Path("function.arguments"); c.Get("function").Exists() && args.Kind() != wire.String {
			return "the arguments of a function must be a string"
		}
	}
	return badImages(content, "image_url.url")
}

func (anthropic) manners() manners {
	return manners{list: "messages", message: "messages.%d", joined: true, tool: longName(), topless: true}
}

func (a anthropic) refuses(m wire.Value, first, last bool) string {
	content := m.Get("content")
	switch {
	case first && m.Get("role").Is("assistant"):
		return "the first message must be of the role user"
	case last && m.Get("role").Is("assistant"): // the model's last message may be empty
	case content.Kind() == wire.String && strings.TrimSpace(content.Str()) == "",
		content.Kind() == wire.Array && content.Len() == 0:
		return "the content must not be empty"
	}
	for part := range content.Items() {
		if why := a.refusesBlock(part); why != "" {
			return why
		}
	}
	return ""
}

func (anthropic) refusesBlock(part wire.Value) string {
	switch part.Get("type").Str() {
	case "text":
		if strings.TrimSpace(part.Get("text").Str()) == "" {
			return "a text block must hold more than white space"
		}
	case "thinking":
		if !part.Get("signature").Is(signature) {
			return "the signature of a thinking block is missing or invalid"
		}
	case "image":
		if source := part.Get("source"); source.Get("type").Is("base64") {
			return badImage(source.Get("media_type").Str(), source.Get("data").Str())
		}
	}
	return ""
}

func (responses) manners() manners {
	return manners{list: "input", message: "input[%d]", anywhere: true, tool: longName()}
}

func (responses) refuses(it wire.Value, _, _ bool) string {
	return badImages(it.Get("content"), "image_url")
}

func (gemini) manners() manners {
	return manners{list: "contents", message: "contents[%d]", joined: true, counted: true}
}

func (gemini) refuses(c wire.Value, first, _ bool) string {
	if c.Get("parts").Len() == 0 {
		return "parts must not be empty"
	}
	for part := range c.Get("parts").Items() {
		if call := either(part, "functionCall", "function_call"); first && call.Exists() {
			return "a function call must come right after a turn of the user or a function response"
		}
		d := either(part, "inlineData", "inline_data")
		if strings.HasPrefix(either(d, "mimeType", "mime_type").Str(), "image/") {
			if _, err := base64.StdEncoding.DecodeString(d.Get("data").Str()); err != nil {
				return "the data of the image is not valid base64"
			}
		}
	}
	return ""
}
