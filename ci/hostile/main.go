//go:build linux

// Hostile is an agent that misbehaves in one way. Its argument selects the misbehaviour. The test in this folder runs
// acp-test against each variant and checks the outcome.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
)

// A stage is a point in an agent's life at which it can turn hostile.
type stage string

const (
	atStart      stage = "start"      // nothing has been read yet
	atInitialize stage = "initialize" // initialize has been read but not answered
	atNew        stage = "new"
	inTurn       stage = "turn"
	afterTurn    stage = "after" // the turn is over
	atEnd        stage = "end"   // the input is closed
)

// mode is one kind of hostile behaviour.
type mode struct {
	name string
	at   stage
	// do is called when the agent reaches the stage. It may never return.
	do func(a *agent)
	// script is added to the scenario after the turn: further lines and files.
	script string
	// timeout is the scenario's timeout; 0 means 6 s.
	timeout time.Duration
	// flags contains additional command-line flags for acp-test.
	flags []string
	// breaks marks a mode that destroys evidence. The run must report the loss, and the evidence may be missing.
	breaks bool
}

// agent answers initialize, session/new and session/prompt, and calls its mode's do when it reaches the mode's stage.
type agent struct {
	mode mode
	in   *bufio.Reader
	id   string // id of the request to answer
	cwd  string
	// answers replaces the usual results, by the stage of the request.
	answers map[stage]string
}

func main() {
	if len(os.Args) < 2 {
		for _, m := range modes() {
			fmt.Println(m.name)
		}
		return
	}
	if f := helpers()[os.Args[1]]; f != nil {
		f(os.Args[2:])
		return
	}
	for _, m := range slices.Concat(modes(), families(), leaks()) {
		if m.name == os.Args[1] {
			a := &agent{mode: m, in: bufio.NewReader(os.Stdin), answers: map[stage]string{}}
			a.serve()
			return
		}
	}
	fmt.Fprintf(os.Stderr, "hostile: there is no mode %q\n", os.Args[1])
	os.Exit(2)
}

func (a *agent) turn(s stage) {
	if a.mode.at == s {
		a.mode.do(a)
	}
}

func (a *agent) serve() {
	a.turn(atStart)
	for {
		line, err := a.in.ReadBytes('\n')
		if err != nil {
			a.turn(atEnd)
			return
		}
		received(line)
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ CWD string }
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil || m.Method == "" {
			continue
		}
		a.id = string(m.ID)
		switch m.Method {
		case "initialize":
			a.turn(atInitialize)
			a.answer(atInitialize, `{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"hostile","version":"1"}}`)
		case "session/new":
			a.cwd = m.Params.CWD
			a.turn(atNew)
			a.answer(atNew, `{"sessionId":"s"}`)
		case "session/prompt":
			askModel()
			a.turn(inTurn)
			a.answer(inTurn, `{"stopReason":"end_turn"}`)
			a.turn(afterTurn)
		default:
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, a.id)
		}
	}
}

// received appends a line from acp-test to the file that HOSTILE_RECEIVED names. If the variable is unset, it does
// nothing.
func received(line []byte) {
	file := os.Getenv("HOSTILE_RECEIVED")
	if file == "" {
		return
	}
	w, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, _ = w.Write(line)
		_ = w.Close()
	}
}

func (a *agent) answer(s stage, usual string) {
	if other, ok := a.answers[s]; ok {
		usual = other
	}
	say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, a.id, usual)
}

func say(format string, args ...any) { _, _ = fmt.Printf(format+"\n", args...) }

func update(body string) {
	say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}`, body)
}

// quote returns a JSON string with as few escapes as JSON allows.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}

// ask sends a request and returns the line with its response, or "" at end of file.
func (a *agent) ask(id int, method, params string) string {
	say(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	for {
		line, err := a.in.ReadBytes('\n')
		if err != nil {
			return ""
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(line, &m) == nil && m.Method == "" && string(m.ID) == strconv.Itoa(id) {
			return string(line)
		}
	}
}

func askModel() {
	if answer, err := post(strings.NewReader(question), "Connection", "close"); err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}

const question = `{"model":"m","messages":[{"role":"user","content":"Say hello."}]}`

// post sends a request to the model server. headers contains names and values in turn. A header named Host sets the
// host of the request.
func post(body io.Reader, headers ...string) (*http.Response, error) {
	r, _ := http.NewRequest("POST", os.Getenv("ANTHROPIC_BASE_URL")+"/v1/chat/completions", body)
	r.Header.Set("Authorization", "Bearer sk-test")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Host, r.Close = r.Header.Get("Host"), r.Header.Get("Connection") == "close"
	return http.DefaultClient.Do(r)
}

// out returns acp-test's output folder. The test passes it in HOSTILE_OUT.
func out() string { return os.Getenv("HOSTILE_OUT") }

// artifact returns the path of a file that acp-test writes for the scenario.
func artifact(name string) string { return filepath.Join(out(), "mode", name) }

// parents returns the process ids of the keeper, which is this process's parent, and of the harness, which is the
// keeper's parent.
func parents() (keeper, harness int) {
	keeper = os.Getppid()
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", keeper))
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	harness, _ = strconv.Atoi(f[1])
	return keeper, harness
}

// forever sleeps and never returns. Agents that stop answering call it.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

func modes() []mode {
	return slices.Concat(floods(), ids(), values(), injections(), secrets(), processes(), files(), evidence(), requests(),
		models(), isolated())
}

// at returns one mode for each stage, all with the same action.
func at(stages []stage, name string, do func(a *agent)) (all []mode) {
	return lists.Map(stages, func(s stage) mode { return mode{name: string(s) + "-" + name, at: s, do: do} })
}

var (
	ends  = []stage{atStart, inTurn}
	most  = []stage{atStart, atInitialize, inTurn, afterTurn}
	every = []stage{atStart, atInitialize, atNew, inTurn, afterTurn, atEnd}
)

// bomb returns about a megabyte of gzip data that unpacks to 1 GiB of zeros. It repeats one compressed block, which
// is fast to create.
func bomb() []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(make([]byte, 1<<20))
	w.Close()
	return bytes.Repeat(b.Bytes(), 1024)
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
