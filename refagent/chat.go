package refagent

import (
	"cmp"
	"encoding/json"
	"strings"
)

// The following types are the parts of Chat Completions that this agent uses:
// https://platform.openai.com/docs/api-reference/chat

type chatRequest struct {
	Model         string        `json:"model"`
	Messages      []chatMessage `json:"messages"`
	Tools         []object      `json:"tools,omitempty"`
	Stream        bool          `json:"stream"`
	StreamOptions object        `json:"stream_options,omitempty"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"` // string or []chatPart
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL object `json:"image_url,omitempty"`
	Audio    object `json:"input_audio,omitempty"`
}

// chatCall is a tool call or, in a stream, a piece of one. The pieces of a call have the same index.
type chatCall struct {
	Index int `json:"index"`
	Call
}

// Call is a tool call in a message, in the form that Chat Completions and AG-UI share.
type Call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatReply struct {
	Content   string     `json:"content"`
	Refusal   string     `json:"refusal"`
	ToolCalls []chatCall `json:"tool_calls"`
	// OpenAI's API has no member for reasoning. Other servers use one of these.
	ReasoningContent string `json:"reasoning_content"`
	Reasoning        string `json:"reasoning"`
}

type chatChunk struct {
	Choices []struct {
		Delta        chatReply  `json:"delta"`
		Message      *chatReply `json:"message"` // instead of Delta if the answer is not streamed
		FinishReason string     `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		TotalTokens      int64 `json:"total_tokens"`
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

func chatRequestOf(model string, history []ModelMessage, offers []Offer, streams bool) chatRequest {
	r := chatRequest{Model: model, Stream: streams}
	if len(history) == 0 || history[0].Role != roleSystem {
		r.Messages = append(r.Messages, chatMessage{Role: roleSystem, Content: systemPrompt})
	}
	if streams {
		r.StreamOptions = object{"include_usage": true}
	}
	for _, m := range history {
		r.Messages = append(r.Messages, chatMessageOf(m))
	}
	for _, o := range offers {
		function := object{"name": o.Name, "description": o.About, "parameters": o.Schema}
		r.Tools = append(r.Tools, object{"type": "function", "function": function})
	}
	return r
}

func chatMessageOf(m ModelMessage) chatMessage {
	out := chatMessage{Role: m.Role, Content: m.Text, ToolCallID: m.CallID}
	for i, c := range m.Calls {
		call := chatCall{i, Call{ID: c.ID, Type: "function"}}
		call.Function.Name, call.Function.Arguments = c.Name, c.Arguments
		out.ToolCalls = append(out.ToolCalls, call)
	}
	if len(m.Parts) == 0 {
		return out
	}
	parts := make([]chatPart, len(m.Parts))
	for i, p := range m.Parts {
		switch kind, format, _ := strings.Cut(p.MimeType, "/"); {
		case p.Data == "":
			parts[i] = chatPart{Type: "text", Text: p.Text}
		case kind == "audio":
			parts[i] = chatPart{Type: "input_audio", Audio: object{"data": p.Data, "format": audioFormat(format)}}
		default:
			parts[i] = chatPart{Type: "image_url", ImageURL: object{"url": "data:" + p.MimeType + ";base64," + p.Data}}
		}
	}
	out.Content = parts
	return out
}

func audioFormat(subtype string) string {
	if subtype == "mpeg" || subtype == "mp3" {
		return "mp3"
	}
	return "wav"
}

// errorMessage returns the message in the body of an error response, in OpenAI's form or a similar one. It returns ""
// if there is none. If the body is not JSON, it returns the body.
func errorMessage(raw []byte) string {
	var body struct {
		Error   any
		Message string
	}
	if json.Unmarshal(raw, &body) != nil {
		return strings.TrimSpace(string(raw))
	}
	said, _ := body.Error.(string)
	if inner, ok := body.Error.(object); ok {
		said, _ = inner["message"].(string)
	}
	return cmp.Or(said, body.Message)
}
