package refagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// The roles of a ModelMessage.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// ModelMessage is one message of the model's context.
type ModelMessage struct {
	Role   string      `json:"role"` // user, assistant or tool
	Text   string      `json:"text"`
	Parts  []Part      `json:"parts,omitempty"`  // user: instead of Text
	Calls  []ModelCall `json:"calls,omitempty"`  // assistant
	CallID string      `json:"callId,omitempty"` // tool: the call it answers
}

// Part is a piece of a user message that holds more than text.
type Part struct {
	Text     string `json:"text,omitempty"`
	Data     string `json:"data,omitempty"` // base64
	MimeType string `json:"mimeType,omitempty"`
}

// ModelCall is one tool call as the model asked for it.
type ModelCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON text
}

// reply is one complete answer of the model.
type reply struct {
	text    string
	calls   []ModelCall
	finish  string // stop, tool_calls, length, content_filter …
	refused bool
	used    int64 // tokens in the context; 0: not reported
}

const systemPrompt = "You are a coding agent inside an editor. Work in the user's workspace with the tools you have. " +
	"Answer in Markdown and keep it short. When the user refuses a tool, say so and go on without it."

// model is the OpenAI Chat Completions endpoint.
type model struct {
	chat      openai.ChatCompletionService
	transport *http.Transport
	name      string
	ready     bool
}

func newModel(getenv func(string) string) *model {
	m := &model{name: getenv(EnvModel), transport: &http.Transport{}}
	if m.name == "" {
		m.name = DefaultModel
	}
	base, key := getenv(EnvBaseURL), getenv(EnvAPIKey)
	if key == "" {
		key = "none"
	}
	m.ready = base != ""
	// The service is made by hand because openai.NewClient reads the
	// process's environment.
	m.chat = openai.NewChatCompletionService(
		option.WithBaseURL(base),
		option.WithAPIKey(key),
		option.WithHTTPClient(&http.Client{Transport: m.transport}),
		option.WithMaxRetries(2),
		option.WithMaxRetryDelay(5*time.Second),
		option.WithMiddleware(noRetryOnServerErrors),
	)
	return m
}

// noRetryOnServerErrors leaves retries to rate limits and broken connections:
// a 5xx is reported to the user at once.
func noRetryOnServerErrors(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(r)
	if res != nil && res.StatusCode >= 500 {
		res.Header.Set("x-should-retry", "false")
	}
	return res, err
}

func (m *model) close() { m.transport.CloseIdleConnections() }

// ask streams one reply. on gets each piece as it arrives: thought true for
// reasoning. A stream that ends without a finish reason is an error.
func (m *model) ask(ctx context.Context, history []ModelMessage, tools []tool, on func(thought bool, piece string)) (reply, error) {
	if !m.ready {
		return reply{}, errors.New(EnvBaseURL + " is not set")
	}
	p := openai.ChatCompletionNewParams{
		Model:         m.name,
		Messages:      []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(systemPrompt)},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	for _, h := range history {
		p.Messages = append(p.Messages, wireMessage(h))
	}
	for _, t := range tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.name, Description: param.NewOpt(t.about), Parameters: t.schema,
		}))
	}

	stream := m.chat.NewStreaming(ctx, p)
	defer stream.Close()
	var out reply
	var text strings.Builder
	for stream.Next() {
		chunk := stream.Current()
		if t := chunk.Usage.TotalTokens; t > 0 {
			out.used = t
		}
		for _, c := range chunk.Choices {
			d := c.Delta
			for _, key := range []string{"reasoning_content", "reasoning"} {
				var thought string
				if raw := d.JSON.ExtraFields[key].Raw(); raw != "" && json.Unmarshal([]byte(raw), &thought) == nil && thought != "" {
					on(true, thought)
					break
				}
			}
			if d.Refusal != "" {
				out.refused = true
			}
			if piece := d.Content + d.Refusal; piece != "" {
				text.WriteString(piece)
				on(false, piece)
			}
			for _, tc := range d.ToolCalls {
				out.calls = grow(out.calls, int(tc.Index), tc.ID, tc.Function.Name, tc.Function.Arguments)
			}
			if c.FinishReason != "" {
				out.finish = c.FinishReason
			}
		}
	}
	out.text = text.String()
	if err := stream.Err(); err != nil {
		return out, err
	}
	if out.finish == "" {
		return out, errors.New("the reply broke off")
	}
	return out, nil
}

// grow adds a fragment to the call at an index; a fragment with a new id that
// repeats an index starts another call, as some servers do.
func grow(calls []ModelCall, index int, id, name, arguments string) []ModelCall {
	for len(calls) <= index {
		calls = append(calls, ModelCall{})
	}
	if id != "" && calls[index].ID != "" && calls[index].ID != id {
		calls, index = append(calls, ModelCall{}), len(calls)
	}
	c := &calls[index]
	if id != "" {
		c.ID = id
	}
	c.Name += name
	c.Arguments += arguments
	return calls
}

func wireMessage(m ModelMessage) openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case roleTool:
		return openai.ToolMessage(m.Text, m.CallID)
	case roleAssistant:
		a := openai.AssistantMessage(m.Text)
		for _, c := range m.Calls {
			a.OfAssistant.ToolCalls = append(a.OfAssistant.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID:       c.ID,
					Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: c.Arguments},
				},
			})
		}
		return a
	}
	if len(m.Parts) == 0 {
		return openai.UserMessage(m.Text)
	}
	parts := make([]openai.ChatCompletionContentPartUnionParam, len(m.Parts))
	for i, p := range m.Parts {
		switch kind, format, _ := strings.Cut(p.MimeType, "/"); {
		case p.Data == "":
			parts[i] = openai.TextContentPart(p.Text)
		case kind == "audio":
			parts[i] = openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{
				Data: p.Data, Format: audioFormat(format),
			})
		default:
			parts[i] = openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{
				URL: "data:" + p.MimeType + ";base64," + p.Data,
			})
		}
	}
	return openai.UserMessage(parts)
}

func audioFormat(subtype string) string {
	if subtype == "mpeg" || subtype == "mp3" {
		return "mp3"
	}
	return "wav"
}

// modelError is a failed model request as the editor gets to see it.
func modelError(err error) *rpcError {
	var api *openai.Error
	if errors.As(err, &api) {
		detail := api.Message
		if detail == "" {
			detail = http.StatusText(api.StatusCode)
		}
		return &rpcError{
			Code:    codeModelFailed,
			Message: fmt.Sprintf("the model answered with HTTP status %d", api.StatusCode),
			Data:    map[string]any{"status": api.StatusCode, "detail": detail},
		}
	}
	return &rpcError{Code: codeModelFailed, Message: "the model request failed", Data: map[string]any{"detail": err.Error()}}
}
