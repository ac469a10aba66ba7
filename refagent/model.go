package refagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/tmaxmax/go-sse"
)

// The roles of a ModelMessage.
const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// ModelMessage is one message of the model's context.
type ModelMessage struct {
	Role   string      `json:"role"` // system, user, assistant or tool
	Text   string      `json:"text"`
	Parts  []Part      `json:"parts,omitempty"`  // for user: used instead of Text
	Calls  []ModelCall `json:"calls,omitempty"`  // for assistant
	CallID string      `json:"callId,omitempty"` // for tool: id of the answered call
}

// withoutFormerCalls removes the tool calls and results of earlier turns.
func withoutFormerCalls(list []ModelMessage) []ModelMessage {
	last := 0
	for i, m := range list {
		if m.Role == "user" {
			last = i
		}
	}
	former := slices.DeleteFunc(slices.Clone(list[:last]), func(m ModelMessage) bool {
		return m.Role == "tool" || len(m.Calls) > 0
	})
	return append(former, list[last:]...)
}

// Part is a part of a user message that contains more than text.
type Part struct {
	Text     string `json:"text,omitempty"`
	Data     string `json:"data,omitempty"` // base64
	MimeType string `json:"mimeType,omitempty"`
}

// ModelCall is a tool call in the model's reply.
type ModelCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON text
}

// Offer is a tool that is offered to the model. Schema is the JSON schema of its arguments.
type Offer struct {
	Name, About string
	Schema      object
}

// Reply is one complete reply of the model.
type Reply struct {
	Text    string
	Calls   []ModelCall
	Finish  string // stop, tool_calls, length, content_filter, …
	Refused bool
	// Used is the number of tokens in the context, Sent in the request, and Made in the reply; 0 means not reported.
	Used, Sent, Made int64
}

const systemPrompt = "You are a coding agent inside an editor. Work in the user's workspace with the tools you have. " +
	"Answer in Markdown and keep it short. When the user refuses a tool, say so and go on without it."

// Model is the client of an OpenAI Chat Completions endpoint. It does not use OpenAI's SDK, because the requests are
// simple and the SDK is as large as the rest of the program.
type Model struct {
	http      *retryablehttp.Client
	transport *http.Transport
	at        atomic.Pointer[endpoint] // nil if the model's address is unknown
	key       string
	name      string
	streams   bool
}

// OpenModel returns the client of the model that the environment configures; see EnvBaseURL. The caller must close
// it.
func OpenModel(getenv func(string) string, habits *Habits) *Model {
	m := &Model{name: getenv(EnvModel), key: getenv(EnvAPIKey),
		transport: &http.Transport{Proxy: http.ProxyFromEnvironment},
		streams:   !habits.NoStream}
	m.name = cmp.Or(m.name, DefaultModel)
	if base := getenv(EnvBaseURL); base != "" {
		m.at.Store(&endpoint{base: base})
	}
	m.http = &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: m.transport},
		RetryMax:     2,
		RetryWaitMin: 500 * time.Millisecond,
		RetryWaitMax: maxRetryWait,
		CheckRetry:   retryPolicy(habits.Retries),
		Backoff:      retryWait,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return m
}

const (
	maxRetryWait = 5 * time.Second
	// maxEvent is the maximum size in bytes of an event. It is large, because a model may send a whole file in one
	// event.
	maxEvent = 64 << 20
	// maxErrorBody is the maximum number of bytes that are read of an error's body.
	maxErrorBody = 64 << 10
)

// retryPolicy returns the policy for retries. A request is retried after rate limits and broken connections. It is
// retried after a status 5xx only if onServerErrors is set; otherwise the user gets the error at once.
func retryPolicy(onServerErrors bool) retryablehttp.CheckRetry {
	return func(ctx context.Context, r *http.Response, err error) (bool, error) {
		if r != nil && r.StatusCode >= 500 && !onServerErrors {
			return false, nil
		}
		return retryablehttp.DefaultRetryPolicy(ctx, r, err)
	}
}

// retryWait returns how long to wait before a retry: as long as the server asks for, but at most hi. OpenAI's servers
// send Retry-After-Ms, in milliseconds.
func retryWait(lo, hi time.Duration, attempt int, r *http.Response) time.Duration {
	if r != nil {
		if ms, err := strconv.Atoi(r.Header.Get("Retry-After-Ms")); err == nil && ms >= 0 {
			return min(time.Duration(ms)*time.Millisecond, hi)
		}
	}
	return min(retryablehttp.DefaultBackoff(lo, hi, attempt, r), hi)
}

// Close closes the client's idle connections.
func (m *Model) Close() { m.transport.CloseIdleConnections() }

// Piece is a part of a reply as it arrives: text, reasoning, or a part of a tool call.
type Piece struct {
	Text, Thought string
	// Call is true if the piece belongs to the tool call with the given Index. The call's first piece has ID and
	// Name. Each piece has the next part of Arguments.
	Call                bool
	Index               int
	ID, Name, Arguments string
}

// Ask requests one reply from the model and calls on with each piece as it arrives. It returns an error if the reply
// ends without a finish reason.
func (m *Model) Ask(ctx context.Context, history []ModelMessage, offers []Offer, on func(Piece)) (out Reply,
	err error) {
	at := m.at.Load()
	if at == nil {
		return out, errors.New(EnvBaseURL + " is not set")
	}
	stream, err := m.open(ctx, at, chatRequestOf(m.name, history, offers, m.streams))
	if err != nil {
		return out, err
	}
	defer stream.Close()
	read := chunks
	if !m.streams {
		read = whole
	}
	var text strings.Builder
	err = read(stream, func(c chatChunk) {
		if c.Usage.TotalTokens > 0 {
			out.Used, out.Sent, out.Made = c.Usage.TotalTokens, c.Usage.PromptTokens, c.Usage.CompletionTokens
		}
		for _, choice := range c.Choices {
			d := cmp.Or(choice.Message, &choice.Delta)
			if thought := cmp.Or(d.ReasoningContent, d.Reasoning); thought != "" {
				on(Piece{Thought: thought})
			}
			if d.Refusal != "" {
				out.Refused = true
			}
			if piece := d.Content + d.Refusal; piece != "" {
				text.WriteString(piece)
				on(Piece{Text: piece})
			}
			for _, call := range d.ToolCalls {
				out.Calls = grow(out.Calls, call.Index, call.ID, call.Function.Name, call.Function.Arguments)
				on(Piece{Call: true, Index: call.Index, ID: call.ID, Name: call.Function.Name,
					Arguments: call.Function.Arguments})
			}
			if choice.FinishReason != "" {
				out.Finish = choice.FinishReason
			}
		}
	})
	out.Text = text.String()
	if err == nil && out.Finish == "" {
		err = errors.New("the reply broke off")
	}
	return out, err
}

// open sends a request and returns the body of the response.
func (m *Model) open(ctx context.Context, at *endpoint, body chatRequest) (io.ReadCloser, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, at.url(), raw)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+cmp.Or(m.key, "none"))
	for name, value := range at.headers {
		r.Header.Set(name, value)
	}
	answer, err := m.http.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		raw, _ := io.ReadAll(io.LimitReader(answer.Body, maxErrorBody))
		return nil, statusError{answer.StatusCode, errorMessage(raw)}
	}
	return answer.Body, nil
}

// chunks reads a streamed response to its end and calls on with each chunk.
func chunks(stream io.Reader, on func(chatChunk)) error {
	for e, err := range sse.Read(stream, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil || e.Data == "[DONE]" {
			return err
		}
		var c chatChunk
		if err := json.Unmarshal([]byte(e.Data), &c); err != nil {
			return err
		}
		if len(c.Error) > 0 {
			return fmt.Errorf("the model broke off: %s", errorMessage([]byte(e.Data)))
		}
		on(c)
	}
	return nil
}

// whole reads a response that is not streamed and calls on with it.
func whole(body io.Reader, on func(chatChunk)) error {
	var c chatChunk
	if err := json.NewDecoder(io.LimitReader(body, maxEvent)).Decode(&c); err != nil {
		return fmt.Errorf("the reply is malformed: %w", err)
	}
	for _, choice := range c.Choices {
		if m := choice.Message; m != nil {
			for i := range m.ToolCalls {
				m.ToolCalls[i].Index = i
			}
		}
	}
	on(c)
	return nil
}

// grow adds a fragment to the call at an index. Some servers reuse an index for another call. If the fragment's id
// differs from the id at the index, grow therefore starts a new call.
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

// statusError is the error for a response with a status other than 200.
type statusError struct {
	status int
	detail string
}

func (e statusError) Error() string { return fmt.Sprintf("HTTP status %d: %s", e.status, e.detail) }

// Refused returns the HTTP status in an error of Ask, or 0 if the error has another reason.
func Refused(err error) int {
	var refused statusError
	errors.As(err, &refused)
	return refused.status
}

// modelError returns the error to send to the editor after a failed model request.
func modelError(err error) *rpcError {
	if refused, ok := errors.AsType[statusError](err); ok {
		return &rpcError{
			Code:    codeModelFailed,
			Message: fmt.Sprintf("the model answered with HTTP status %d", refused.status),
			Data:    object{"status": refused.status, "detail": cmp.Or(refused.detail, http.StatusText(refused.status))},
		}
	}
	return &rpcError{Code: codeModelFailed, Message: "the model request failed",
		Data: object{"detail": err.Error()}}
}
