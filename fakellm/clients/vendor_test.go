package clients_test

import (
	"context"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"google.golang.org/genai"

	"github.com/acp-test/acp-test/fakellm"
)

// said is what a vendor's client made of an answer.
type said struct {
	text, thinking, stop string
	calls                []called
	in, out              int64
	id                   string
}

type called struct{ id, name, args string }

// line is one item of a conversation: what the user or the model said, or the
// results of the model's calls.
type line struct {
	user    string
	model   *said
	results []string // one for each call of the said before
}

// vendor is an official client. ask sends a conversation, with tools, and
// retries as the client does by itself, at most twice.
type vendor struct {
	name string
	ask  func(ctx context.Context, base string, lines []line, stream bool) (said, error)
	// stops are the vendor's words for end, length, refusal and tool.
	stops [4]string
}

var toolNames = []string{"write_file", "read_file"}

var toolSchema = map[string]any{"type": "object",
	"properties": map[string]any{"path": map[string]any{"type": "string"}, "content": map[string]any{"type": "string"}},
	"required":   []string{"path"}}

var vendors = []vendor{
	{fakellm.OpenAIChat, askChat, [4]string{"stop", "length", "content_filter", "tool_calls"}},
	{fakellm.OpenAIResponses, askResponses,
		[4]string{"completed", "incomplete max_output_tokens", "incomplete content_filter", "completed"}},
	{fakellm.Anthropic, askAnthropic, [4]string{"end_turn", "max_tokens", "refusal", "tool_use"}},
	{fakellm.Gemini, askGemini, [4]string{"STOP", "MAX_TOKENS", "SAFETY", "STOP"}},
}

func askChat(ctx context.Context, base string, lines []line, stream bool) (said, error) {
	c := openai.NewClient(openaioption.WithBaseURL(base+"/v1"), openaioption.WithAPIKey("sk-test"))
	p := openai.ChatCompletionNewParams{Model: "fake-model"}
	for _, name := range toolNames {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: name,
			Parameters: toolSchema}))
	}
	var calls []called
	for _, l := range lines {
		switch {
		case l.user != "":
			p.Messages = append(p.Messages, openai.UserMessage(l.user))
		case l.model != nil:
			m := openai.ChatCompletionAssistantMessageParam{}
			m.Content.OfString = openai.String(l.model.text)
			calls = l.model.calls
			for _, k := range calls {
				var f openai.ChatCompletionMessageFunctionToolCallParam
				f.ID, f.Function.Name, f.Function.Arguments = k.id, k.name, k.args
				m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &f})
			}
			p.Messages = append(p.Messages, openai.ChatCompletionMessageParamUnion{OfAssistant: &m})
		}
		for i, res := range l.results {
			p.Messages = append(p.Messages, openai.ToolMessage(res, calls[i].id))
		}
	}
	var full openai.ChatCompletion
	thinking := ""
	if stream {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
		s := c.Chat.Completions.NewStreaming(ctx, p)
		acc := openai.ChatCompletionAccumulator{}
		for s.Next() {
			chunk := s.Current()
			acc.AddChunk(chunk)
			if len(chunk.Choices) > 0 {
				thinking += extra(chunk.Choices[0].Delta.JSON.ExtraFields["reasoning_content"].Raw())
			}
		}
		if s.Err() != nil {
			return said{}, s.Err()
		}
		full = acc.ChatCompletion
	} else {
		got, err := c.Chat.Completions.New(ctx, p)
		if err != nil {
			return said{}, err
		}
		full = *got
		thinking = extra(full.Choices[0].Message.JSON.ExtraFields["reasoning_content"].Raw())
	}
	m := full.Choices[0].Message
	out := said{text: m.Content, thinking: thinking, stop: full.Choices[0].FinishReason, in: full.Usage.PromptTokens,
		out: full.Usage.CompletionTokens, id: full.ID}
	for _, k := range m.ToolCalls {
		out.calls = append(out.calls, called{k.ID, k.Function.Name, k.Function.Arguments})
	}
	return out, nil
}

func extra(raw string) string {
	var s string
	_ = json.Unmarshal([]byte(raw), &s)
	return s
}

func askResponses(ctx context.Context, base string, lines []line, stream bool) (said, error) {
	c := openai.NewClient(openaioption.WithBaseURL(base+"/v1"), openaioption.WithAPIKey("sk-test"))
	p := responses.ResponseNewParams{Model: "fake-model"}
	for _, name := range toolNames {
		p.Tools = append(p.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{Name: name,
			Parameters: toolSchema}})
	}
	var in responses.ResponseInputParam
	var calls []called
	for _, l := range lines {
		switch {
		case l.user != "":
			in = append(in, responses.ResponseInputItemParamOfMessage(l.user, responses.EasyInputMessageRoleUser))
		case l.model != nil:
			// What came before is known to the server by its id.
			in, calls = nil, l.model.calls
			p.PreviousResponseID = openai.String(l.model.id)
		}
		for i, res := range l.results {
			o := responses.ResponseInputItemParamOfFunctionCallOutput(res)
			o.OfFunctionCallOutput.CallID = openai.String(calls[i].id)
			in = append(in, o)
		}
	}
	p.Input.OfInputItemList = in
	var full responses.Response
	streamed := ""
	if stream {
		s := c.Responses.NewStreaming(ctx, p)
		for s.Next() {
			switch e := s.Current(); e.Type {
			case "response.output_text.delta":
				streamed += e.Delta
			case "response.completed", "response.incomplete":
				full = e.Response
			}
		}
		if s.Err() != nil {
			return said{}, s.Err()
		}
	} else {
		got, err := c.Responses.New(ctx, p)
		if err != nil {
			return said{}, err
		}
		full = *got
		streamed = full.OutputText()
	}
	out := said{text: streamed, stop: string(full.Status), in: full.Usage.InputTokens, out: full.Usage.OutputTokens,
		id: full.ID}
	if full.IncompleteDetails.Reason != "" {
		out.stop += " " + string(full.IncompleteDetails.Reason)
	}
	for _, it := range full.Output {
		switch it.Type {
		case "reasoning":
			out.thinking += it.Summary[0].Text
		case "function_call":
			out.calls = append(out.calls, called{it.CallID, it.Name, it.Arguments.OfString})
		}
	}
	return out, nil
}

func askAnthropic(ctx context.Context, base string, lines []line, stream bool) (said, error) {
	c := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey("sk-test"))
	p := anthropic.MessageNewParams{Model: "fake-model", MaxTokens: 100}
	for _, name := range toolNames {
		p.Tools = append(
			p.Tools, anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: toolSchema["properties"],
				Required: []string{"path"}}, name),
		)
	}
	var calls []called
	for _, l := range lines {
		var blocks []anthropic.ContentBlockParamUnion
		switch {
		case l.user != "":
			p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(l.user)))
		case l.model != nil:
			if l.model.text != "" {
				blocks = append(blocks, anthropic.NewTextBlock(l.model.text))
			}
			calls = l.model.calls
			for _, k := range calls {
				blocks = append(blocks, anthropic.NewToolUseBlock(k.id, json.RawMessage(k.args), k.name))
			}
			p.Messages = append(p.Messages, anthropic.NewAssistantMessage(blocks...))
		default:
			for i, res := range l.results {
				blocks = append(blocks, anthropic.NewToolResultBlock(calls[i].id, res, false))
			}
			p.Messages = append(p.Messages, anthropic.NewUserMessage(blocks...))
		}
	}
	var full anthropic.Message
	if stream {
		s := c.Messages.NewStreaming(ctx, p)
		for s.Next() {
			if err := full.Accumulate(s.Current()); err != nil {
				return said{}, err
			}
		}
		if s.Err() != nil {
			return said{}, s.Err()
		}
	} else {
		got, err := c.Messages.New(ctx, p)
		if err != nil {
			return said{}, err
		}
		full = *got
	}
	out := said{stop: string(full.StopReason), in: full.Usage.InputTokens, out: full.Usage.OutputTokens, id: full.ID}
	for _, b := range full.Content {
		switch b.Type {
		case "text":
			out.text += b.Text
		case "thinking":
			out.thinking += b.Thinking
		case "tool_use":
			out.calls = append(out.calls, called{b.ID, b.Name, string(b.Input)})
		}
	}
	return out, nil
}

func askGemini(ctx context.Context, base string, lines []line, stream bool) (said, error) {
	attempts, delay := int32(3), 0.01
	c, err := genai.NewClient(ctx,
		&genai.ClientConfig{APIKey: "sk-test", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{
			BaseURL: base, RetryOptions: &genai.HTTPRetryOptions{Attempts: &attempts, InitialDelay: &delay}}})
	if err != nil {
		return said{}, err
	}
	cfg := &genai.GenerateContentConfig{}
	for _, name := range toolNames {
		cfg.Tools = append(cfg.Tools, &genai.Tool{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: name,
			ParametersJsonSchema: toolSchema}}})
	}
	var contents []*genai.Content
	var calls []called
	for _, l := range lines {
		var parts []*genai.Part
		switch {
		case l.user != "":
			contents = append(contents, genai.NewContentFromText(l.user, genai.RoleUser))
		case l.model != nil:
			if l.model.text != "" {
				parts = append(parts, genai.NewPartFromText(l.model.text))
			}
			calls = l.model.calls
			for _, k := range calls {
				var args map[string]any
				if err := json.Unmarshal([]byte(k.args), &args); err != nil {
					return said{}, err
				}
				parts = append(parts, genai.NewPartFromFunctionCall(k.name, args))
			}
			contents = append(contents, genai.NewContentFromParts(parts, genai.RoleModel))
		default:
			for i, res := range l.results {
				parts = append(parts, genai.NewPartFromFunctionResponse(calls[i].name, map[string]any{"output": res}))
			}
			contents = append(contents, genai.NewContentFromParts(parts, genai.RoleUser))
		}
	}
	out := said{}
	take := func(r *genai.GenerateContentResponse) error {
		out.id = r.ResponseID
		out.in, out.out = int64(r.UsageMetadata.PromptTokenCount), int64(r.UsageMetadata.CandidatesTokenCount)
		for _, cand := range r.Candidates {
			if cand.FinishReason != "" {
				out.stop = string(cand.FinishReason)
			}
			for _, part := range cand.Content.Parts {
				switch {
				case part.FunctionCall != nil:
					args, err := json.Marshal(part.FunctionCall.Args)
					if err != nil {
						return err
					}
					out.calls = append(out.calls, called{part.FunctionCall.ID, part.FunctionCall.Name, string(args)})
				case part.Thought:
					out.thinking += part.Text
				default:
					out.text += part.Text
				}
			}
		}
		return nil
	}
	if !stream {
		r, err := c.Models.GenerateContent(ctx, "fake-model", contents, cfg)
		if err != nil {
			return said{}, err
		}
		return out, take(r)
	}
	for r, err := range c.Models.GenerateContentStream(ctx, "fake-model", contents, cfg) {
		if err != nil {
			return said{}, err
		}
		if err := take(r); err != nil {
			return said{}, err
		}
	}
	return out, nil
}
