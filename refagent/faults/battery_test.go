package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-test/acp-test/refagent"
)

type object = map[string]any

var errOver = errors.New("over")

// battery drives one agent through everything the faults are about and keeps
// what an editor, the model and the disk saw of it. It ends at the first step
// that gets no answer.
type battery struct {
	dir, state string
	hooks      func() refagent.Hooks
	patience   time.Duration
	model      *model
	log        []string

	in     *io.PipeWriter
	lines  chan string
	ended  chan error
	stop   context.CancelFunc
	nextID int
	choice string // how permissions are answered: an option id, cancelled, error, hold
	held   []any
	pauses atomic.Pointer[pause]
	bare   bool // an editor without capabilities
	reads  bool // an editor that only reads files
	able   bool // an editor that shows forms and opens pages
	login  bool // the agent wants a login
	news   bool // an editor that takes notices and compactions, and says where the model is
}

// pause keeps the editor from reading on after a line that holds a text.
type pause struct {
	after string
	over  chan struct{}
}

// pauseAfter stops the reading at the next line that holds text, until the
// function it returns is called.
func (b *battery) pauseAfter(text string) (goOn func()) {
	p := &pause{after: text, over: make(chan struct{})}
	b.pauses.Store(p)
	return sync.OnceFunc(func() { close(p.over) })
}

func (b *battery) note(format string, args ...any) {
	b.log = append(b.log, fmt.Sprintf(format, args...))
}

func (b *battery) start() {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	b.in, b.stop, b.lines, b.ended = inW, stop, make(chan string, 1024), make(chan error, 1)
	var hooks refagent.Hooks
	if b.hooks != nil {
		hooks = b.hooks()
	}
	ended, lines, env := b.ended, b.lines, map[string]string{refagent.EnvBaseURL: b.model.URL + "/v1"}
	if b.news {
		env[refagent.EnvProviders] = "yes"
	}
	if b.login {
		env[refagent.EnvAuth] = "agent"
	}
	go func() {
		err := refagent.Run(ctx, refagent.Options{
			In: inR, Out: outW, StateDir: b.state, AnswerGrace: 150 * time.Millisecond, Hooks: hooks,
			Getenv: func(k string) string { return env[k] },
		})
		outW.Close()
		inR.Close()
		ended <- err
	}()
	go func() {
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if p := b.pauses.Load(); p != nil && strings.Contains(line, p.after) {
				<-p.over
			}
			if err != nil {
				close(lines)
				return
			}
		}
	}()
	b.note("== start")
	caps := object{"fs": object{"readTextFile": true, "writeTextFile": true}, "terminal": true, "subagents": object{}}
	if b.news {
		caps["session"] = object{"notices": object{}, "compaction": object{}}
	}
	if b.bare {
		caps = object{}
	}
	if b.reads {
		caps = object{"fs": object{"readTextFile": true}}
	}
	if b.able {
		caps["elicitation"] = object{"form": object{}, "url": object{}}
	}
	b.call("initialize", object{"protocolVersion": 1, "clientCapabilities": caps})
}

// end closes the input and waits for the agent.
func (b *battery) end() {
	b.in.Close()
	deadline := time.After(b.patience)
	for {
		select {
		case line, open := <-b.lines:
			if open {
				b.take(line)
				continue
			}
			b.note("== ended: %v", <-b.ended)
			b.stop()
			return
		case <-deadline:
			b.stuck("the end")
		}
	}
}

func (b *battery) stuck(at string) { b.over("stuck", at) }

func (b *battery) over(how, at string) {
	b.note("== %s at %s", how, at)
	panic(errOver)
}

func (b *battery) send(v any) {
	raw, _ := json.Marshal(v)
	b.raw(string(raw) + "\n")
}

func (b *battery) raw(s string) {
	done := make(chan struct{})
	go func() { _, _ = io.WriteString(b.in, s); close(done) }()
	select {
	case <-done:
	case <-time.After(b.patience):
		b.stuck("a write")
	}
}

func (b *battery) request(method string, params any) int {
	b.nextID++
	b.note("--> %d %s", b.nextID, method)
	b.send(object{"jsonrpc": "2.0", "id": b.nextID, "method": method, "params": params})
	return b.nextID
}

func (b *battery) notify(method string, params any) {
	b.note("--> %s", method)
	b.send(object{"jsonrpc": "2.0", "method": method, "params": params})
}

// take notes a line of the agent and answers what it asks.
func (b *battery) take(line string) object {
	var m object
	if json.Unmarshal([]byte(line), &m) != nil || strings.Count(line, "\n") != 1 {
		b.note("<-- %q", line)
		return nil
	}
	// The order of keys is no news.
	same, _ := json.Marshal(m)
	b.note("<-- %s", same)
	method, _ := m["method"].(string)
	if id, ok := m["id"]; ok && method != "" {
		b.answer(id, method, m)
	}
	return m
}

func (b *battery) answer(id any, method string, m object) {
	reply := func(result any) { b.send(object{"jsonrpc": "2.0", "id": id, "result": result}) }
	switch method {
	case "session/request_permission":
		switch b.choice {
		case "hold":
			b.held = append(b.held, id)
		case "cancelled":
			reply(object{"outcome": object{"outcome": "cancelled"}})
		case "error":
			b.send(object{"jsonrpc": "2.0", "id": id, "error": object{"code": -32603, "message": "no"}})
		default:
			reply(object{"outcome": object{"outcome": "selected", "optionId": b.choice}})
		}
	case "elicitation/create":
		switch b.choice {
		case "error":
			b.send(object{"jsonrpc": "2.0", "id": id, "error": object{"code": -32603, "message": "no"}})
		case "wrong type":
			reply(object{"action": "accept", "content": object{"answer": 7}})
		default:
			reply(object{"action": b.choice, "content": object{"answer": "blue"}})
		}
	case "fs/read_text_file":
		reply(object{"content": "unsaved text"})
	case "fs/write_text_file":
		params, _ := m["params"].(object)
		if path, _ := params["path"].(string); strings.HasSuffix(path, "refused.txt") {
			b.send(object{"jsonrpc": "2.0", "id": id, "error": object{"code": -32603, "message": "no"}})
			return
		}
		reply(object{})
	case "terminal/kill", "terminal/release":
		reply(object{})
	case "terminal/create":
		reply(object{"terminalId": "t1"})
	case "terminal/wait_for_exit":
		reply(object{"exitCode": 0, "signal": nil})
	case "terminal/output":
		reply(object{"output": "printed", "truncated": false})
	default:
		b.send(object{"jsonrpc": "2.0", "id": id, "error": object{"code": -32601, "message": "unknown"}})
	}
}

// until takes lines until one fits.
func (b *battery) until(what string, fits func(m object) bool) object {
	deadline := time.After(b.patience)
	for {
		select {
		case line, open := <-b.lines:
			if !open {
				b.over("gone", what)
			}
			if m := b.take(line); m != nil && fits(m) {
				return m
			}
		case <-deadline:
			b.stuck(what)
		}
	}
}

func answersTo(m object, id int) bool { return m["method"] == nil && m["id"] == float64(id) }

// during is until, as long as the prompt with an id runs.
func (b *battery) during(id int, what string, fits func(m object) bool) {
	m := b.until(what, func(m object) bool { return fits(m) || answersTo(m, id) })
	if answersTo(m, id) {
		b.over("an answer instead of", what)
	}
}

func (b *battery) response(id int) object {
	m := b.until(fmt.Sprintf("answer %d", id), func(m object) bool { return answersTo(m, id) })
	result, _ := m["result"].(object)
	return result
}

func (b *battery) call(method string, params any) object {
	return b.response(b.request(method, params))
}

// settle lets frames come that have no business to come.
func (b *battery) settle() { b.call("session/list", object{"cwd": "/nowhere"}) }

func (b *battery) newSession() string {
	r := b.call("session/new", object{"cwd": b.dir, "mcpServers": []any{}})
	id, _ := r["sessionId"].(string)
	b.settle()
	return id
}

// broken opens a session with an MCP server that does not start.
func (b *battery) broken() string {
	server := object{"name": "broken", "command": "/no/such/program", "args": []any{}, "env": []any{}}
	r := b.call("session/new", object{"cwd": b.dir, "mcpServers": []any{server}})
	id, _ := r["sessionId"].(string)
	b.settle()
	return id
}

func prompt(session string, blocks ...any) object {
	for i, block := range blocks {
		if s, ok := block.(string); ok {
			blocks[i] = object{"type": "text", "text": s}
		}
	}
	return object{"sessionId": session, "prompt": blocks}
}

func (b *battery) turn(session string, blocks ...any) {
	b.call("session/prompt", prompt(session, blocks...))
	b.settle()
}

func (b *battery) wait(what string, c chan struct{}) {
	select {
	case <-c:
	case <-time.After(b.patience):
		b.stuck(what)
	}
}

var sessionIDs = regexp.MustCompile(`sess_[0-9a-f]{32}`)
var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// text is the whole of what was seen, with ids and times taken out.
func (b *battery) text() string {
	s := strings.Join(b.log, "\n")
	b.model.mu.Lock()
	s += "\nmodel " + strings.Join(b.model.seen, "\nmodel ")
	b.model.mu.Unlock()
	names := map[string]string{}
	s = sessionIDs.ReplaceAllStringFunc(s, func(id string) string {
		if names[id] == "" {
			names[id] = fmt.Sprintf("S%d", len(names)+1)
		}
		return names[id]
	})
	s = times.ReplaceAllString(s, "TIME")
	s = strings.ReplaceAll(s, b.dir, "$WORK")
	_ = filepath.WalkDir(b.dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := os.ReadFile(p)
			s += fmt.Sprintf("\nfile %s %q", strings.TrimPrefix(p, b.dir), data)
		}
		return nil
	})
	return s
}

// run carries the steps out, from a fresh agent.
func run(dir, state string, hooks func() refagent.Hooks, patience time.Duration, bare bool,
	steps func(b *battery)) string {
	b := &battery{dir: dir, state: state, hooks: hooks, patience: patience, model: newModel(), choice: "allow-once",
		bare: bare}
	defer b.model.Close()
	func() {
		defer func() {
			if r := recover(); r != nil {
				if r != errOver {
					panic(r)
				}
				b.in.Close()
				b.stop()
			}
		}()
		b.start()
		steps(b)
		b.end()
	}()
	if b.stop != nil {
		b.stop()
	}
	return b.text()
}
