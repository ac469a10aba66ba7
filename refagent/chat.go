package refagent

import (
	"encoding/json"
	"strings"
)

// The shapes of Chat Completions, as far as this agent uses them:
// https://platform.openai.com/docs/api-reference/chat

type chatRequest struct {
	Model         string        `json:"model"`
	Messages      []chatMessage `json:"messages"`
	Tools         []chatTool    `json:"tools,omitempty"`
	Stream        bool          `json:"stream"`
	StreamOptions *chatStream   `json:"stream_options,omitempty"`
}

type chatStream struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"` // a string or []chatPart
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatPart struct {
	Type     string     `json:"type"`
	Text     string     `json:"text,omitempty"`
	ImageURL *chatImage `json:"image_url,omitempty"`
	Audio    *chatAudio `json:"input_audio,omitempty"`
}

type chatImage struct {
	URL string `json:"url"`
}

type chatAudio struct {
	Data   string `json:"data"` // base64
	Format string `json:"format"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"`
}

// chatCall is a call of a tool, or a piece of one in a stream: those with the
// same index belong together.
type chatCall struct {
	Index    int    `json:"index"`
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
	// Not OpenAI's own: servers agree on the thing, not on its name.
	ReasoningContent string `json:"reasoning_content"`
	Reasoning        string `json:"reasoning"`
}

func (r *chatReply) calls() []chatCall {
	if r == nil {
		return nil
	}
	return r.ToolCalls
}

type chatChunk struct {
	Choices []struct {
		Delta        chatReply  `json:"delta"`
		Message      *chatReply `json:"message"` // instead of Delta, where the answer is no stream
		FinishReason string     `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		TotalTokens      int64 `json:"total_tokens"`
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

func chatRequestOf(model string, history []ModelMessage, tools []tool, streams bool) chatRequest {
	r := chatRequest{Model: model, Stream: streams, Messages: []chatMessage{{Role: "system", Content: systemPrompt}}}
	if streams {
		r.StreamOptions = &chatStream{IncludeUsage: true}
	}
	for _, m := range history {
		r.Messages = append(r.Messages, chatMessageOf(m))
	}
	for _, t := range tools {
		r.Tools = append(r.Tools, chatTool{Type: "function", Function: chatFunction{t.called(), t.about, t.schema}})
	}
	return r
}

func chatMessageOf(m ModelMessage) chatMessage {
	out := chatMessage{Role: m.Role, Content: m.Text, ToolCallID: m.CallID}
	for i, c := range m.Calls {
		call := chatCall{Index: i, ID: c.ID, Type: "function"}
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
			parts[i] = chatPart{Type: "input_audio", Audio: &chatAudio{Data: p.Data, Format: audioFormat(format)}}
		default:
			parts[i] = chatPart{Type: "image_url", ImageURL: &chatImage{URL: "data:" + p.MimeType + ";base64," + p.Data}}
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

// errorMessage is what an error's body says; empty when it says nothing in the
// form that OpenAI gives it, or in one near to it.
func errorMessage(raw []byte) string {
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return strings.TrimSpace(string(raw))
	}
	var inner struct {
		Message string `json:"message"`
	}
	var plain string
	switch {
	case json.Unmarshal(body.Error, &inner) == nil && inner.Message != "":
		return inner.Message
	case json.Unmarshal(body.Error, &plain) == nil && plain != "":
		return plain
	}
	return body.Message
}
