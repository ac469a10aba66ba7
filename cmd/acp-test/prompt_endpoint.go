package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/protocol/acp/prompt"
	"github.com/acp-test/acp-test/protocol/agui/aguiframe"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// web lists the flags of prompt that work with an AG-UI endpoint.
const web = " url header agent cwd output llm env timeout start-timeout exit-codes help color protocol "

// promptEndpoint posts one run to an AG-UI endpoint and shows the events of the answer. It starts the endpoint if the
// profile has a command.
func (h *host) promptEndpoint(ctx context.Context, o *prompting, agent prompt.Agent, words []string) (err error) {
	text, err := h.promptText(words)
	if err != nil {
		return err
	}
	log, err := transcript.New(transcript.Header{Tool: tool(), Agent: agent.Name},
		transcript.Options{Classifier: aguiframe.Classifier{}})
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var server *transport.Agent
	if agent.Command.Path == "" {
		server = transport.New(log, 0, o.at, transport.Options{})
	} else if server, err = transport.StartServer(ctx, log, 0, agent.Command, o.at); err != nil {
		return err
	}
	defer func() { server.Stop(context.WithoutCancel(ctx)) }()
	server.Receive(func(transcript.Entry) {})
	start, cancel := context.WithTimeoutCause(ctx, agent.Start, errors.New("--start-timeout"))
	defer cancel()
	if err := o.at.Ready(start, log, 0, server.HasProcess()); err != nil {
		return err // the error names the agent
	}
	s := &stream{Screen: prompt.Screen{Output: o.output, Out: h.out, Err: h.err, Paint: h.style(h.err).put}}
	if secrets := h.secrets(o.env...); secrets != nil {
		s.Out, s.Err = secrets.Writer(s.Out), secrets.Writer(s.Err)
	}
	body, _ := json.Marshal(map[string]any{ // strings always have a JSON form
		"threadId": process.NewRunID(), "runId": process.NewRunID(), "state": struct{}{}, "tools": []any{},
		"messages": []any{map[string]any{"id": "1", "role": "user", "content": text}},
		"context":  []any{}, "forwardedProps": struct{}{},
	})
	asked := server.Append(body)
	s.entry(asked)
	if err := o.at.Do(endpoint.Post{Ref: asked.Seq, Body: body, Patience: 5 * time.Second}); err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	s.follow(ctx, log, asked.Seq)
	return s.verdict(ctx, o)
}

// stream prints the events of one run of an endpoint.
type stream struct {
	prompt.Screen
	message string // id of the latest message shown
	midLine bool
	thought strings.Builder
	names   map[string]string // names of tool calls, by id
	args    map[string]string
	problem string // why the run failed or the stream is invalid
	end     string // value of endpoint.EndOf; "" if ctx ended first
}

// follow prints the answer to the post with Seq ref. It returns when the answer or ctx ends.
func (s *stream) follow(ctx context.Context, log *transcript.Transcript, ref int) {
	s.names, s.args = map[string]string{}, map[string]string{}
	for after := ref; ; {
		o := log.Await(ctx, after, transcript.First("what answers the run", func(e transcript.Entry) bool {
			return e.Source == transcript.Agent && e.Ref == ref
		}))
		if !o.Met() {
			s.breakLine()
			return
		}
		after = o.Entry.Seq
		s.entry(o.Entry)
		if s.end = endpoint.EndOf(o.Entry); s.end != "" {
			s.breakLine()
			s.problem = cmp.Or(s.problem, o.Entry.JSON().Get("problem").Str())
			return
		}
	}
}

func (s *stream) entry(e transcript.Entry) {
	v := e.JSON()
	if s.Output == "jsonl" && (aguiframe.Event(e) != "" || e.Source == transcript.Editor) {
		_, _ = s.Out.Write(append(bytes.Clone(e.Raw), '\n'))
	}
	if code, _ := v.Get("status").Int(); e.Kind == transcript.Response && code != 200 {
		s.problem = prompt.OneLine(fmt.Sprintf("HTTP status %s: %s", v.Get("status").Raw(), v.Get("body").Str()))
	}
	call := v.Get("toolCallId").Str()
	switch kind := aguiframe.Event(e); kind {
	case "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK":
		s.say(v.Get("messageId").Str(), v.Get("delta").Str())
	case "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK", "THINKING_TEXT_MESSAGE_CONTENT":
		s.thought.WriteString(v.Get("delta").Str())
	case "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK":
		s.names[call] = cmp.Or(v.Get("toolCallName").Str(), s.names[call])
		s.args[call] += v.Get("delta").Str()
	case "TOOL_CALL_END":
		s.aside("tool", s.names[call]+" "+s.args[call])
	case "TOOL_CALL_RESULT":
		s.aside("result", v.Get("content").Text())
	case "STATE_SNAPSHOT", "STATE_DELTA":
		s.aside("state", string(cmp.Or(v.Get("snapshot"), v.Get("delta")).Raw()))
	case "STEP_STARTED":
		s.aside("step", v.Get("stepName").Str())
	case "RUN_FINISHED":
		for i := range v.Path("outcome.interrupts").Items() {
			s.aside("interrupt", i.Get("id").Str()+" "+i.Get("message").Str())
		}
	case "RUN_ERROR":
		s.problem = prompt.OneLine(strings.TrimSpace(v.Get("code").Str() + " " + v.Get("message").Str()))
	}
}

// say prints a piece of the message with this id. Each message begins on a new line.
func (s *stream) say(id, delta string) {
	if id != "" && id != s.message {
		s.breakLine()
		s.message = id
	}
	s.endThought()
	if s.Output != "jsonl" && delta != "" {
		_, _ = io.WriteString(s.Out, printable.Text(delta))
		s.midLine = !strings.HasSuffix(delta, "\n")
	}
}

func (s *stream) endThought() {
	thought := s.thought.String()
	if s.thought.Reset(); thought != "" {
		s.aside("thought", thought)
	}
}

func (s *stream) breakLine() {
	if s.endThought(); s.midLine {
		_, _ = io.WriteString(s.Out, "\n")
		s.midLine = false
	}
}

// aside writes one line about the agent's work to stderr.
func (s *stream) aside(what, line string) {
	if s.breakLine(); s.Output == "text" {
		fmt.Fprintln(s.Err, s.Paint("2", "["+what+"] "+prompt.OneLine(line)))
	}
}

// verdict returns the exit status of the run, and prints the reason to stderr.
func (s *stream) verdict(ctx context.Context, o *prompting) error {
	end := func(code int, said string) error {
		fmt.Fprintln(s.Err, "acp-test: "+said)
		return status(code)
	}
	switch {
	case s.end == "finished":
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && o.codes == "acp":
		return end(124, fmt.Sprintf("the run took longer than %v (--timeout), and the connection was closed", o.timeout))
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return end(1, fmt.Sprintf("the run took longer than %v (--timeout), and the connection was closed", o.timeout))
	case ctx.Err() != nil:
		return end(130, "interrupted: the connection was closed")
	case s.end == "interrupt":
		return end(1, "the run ended with an interrupt, which prompt cannot answer: a scenario can, with `resume`")
	case s.end == "error":
		return end(1, "the run failed: "+s.problem)
	}
	said := strings.TrimSuffix("the answer is an incomplete run ("+cmp.Or(s.end, "it has no end")+"): "+s.problem, ": ")
	if s.end == "refused" && o.url != "" {
		said += "; if this is an ACP agent, use --protocol acp-v1"
	}
	return end(1, said)
}
