package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/scenarios/script"
)

// AgentScript is the script of a scenario that begins with "role agent": what
// the agent does when the editor under test does something, and what the editor
// should have done in the end. It is plain data; package replay plays it.
type AgentScript struct {
	// Capabilities are values of agentCapabilities by their dotted path.
	Capabilities map[string]string
	// Timeout is how long a session may take; 0 leaves the default.
	Timeout  time.Duration
	RulesOff map[string]string
	Handlers []AgentHandler
	Checks   []AgentCheck
}

// AgentHandler is an "on" block: acts for one event.
type AgentHandler struct {
	Line int
	// Event is a method of the editor, or "connect" or "eof".
	Event string
	// Text must match the text of a prompt; nil matches all.
	Text *regexp.Regexp
	// Nth is the n-th such event, from 1; 0 is every one.
	Nth  int
	Acts []AgentAct
}

// AgentAct is one line in a handler.
type AgentAct struct {
	Line int
	Name string
	// Words are the arguments, Options those of the form key=value.
	Words   []AgentWord
	Options map[string]AgentWord
	// As is the name of what the act sent.
	As   string
	Body []AgentAct
}

// AgentWord is one argument, with variables that are known only in the run.
type AgentWord struct{ w script.Word }

// Expand replaces the variables.
func (w AgentWord) Expand(lookup func(name string) (string, error)) (string, error) {
	return w.w.Expand(lookup)
}

// AgentCheck is a check of an agent-side scenario.
type AgentCheck struct {
	Slug, Title  string
	Requirements []string
	Line         int
	Lines        []AgentExpectation
}

// AgentExpectation is one line of a check: about what the editor sent, or what
// it answered.
type AgentExpectation struct {
	Line   int
	Text   string
	Negate bool
	// What is "sent", "answered" or "left-running"; About the method or the name of a
	// request.
	What, About string
	// Count is how often, "" at least once: "2", ">=2", "<=1".
	Count string
	// Fields are conditions on the frame.
	Fields []AgentField
}

// AgentField is a condition on a value of a frame, by its path in params,
// result, error or the whole message; kind is the kind of the option chosen.
type AgentField struct {
	Path, Operator string
	Value          AgentWord
}

// agentAct describes an act of the language.
type agentAct struct {
	name, args, summary string
	min, max            int // words
	options             []string
	block, captures     bool
}

func agentActs() []agentAct {
	return []agentAct{
		{"text", "'TEXT' [id=MESSAGE]", "a chunk of the agent's message", 1, 1, []string{"id"}, false, false},
		{"thought", "'TEXT' [id=MESSAGE]", "a chunk of its thoughts", 1, 1, []string{"id"}, false, false},
		{"user", "'TEXT' [id=MESSAGE]", "a chunk of the user's message, as in a replay", 1, 1, []string{"id"}, false, false},
		{"large", "BYTES", "a chunk of text that makes a line of about so many bytes", 1, 1, nil, false, false},
		{"update", "JSON [session=ID]", "any session/update", 1, 1, []string{"session"}, false, false},
		{"tool", "ID TITLE [kind=] [status=]", "a tool_call", 2, 2, []string{"kind", "status"}, false, false},
		{"tool-update", "ID [status=] [text=] [title=]", "a tool_call_update", 1, 1, []string{"status", "text", "title"}, false, false},
		{"permission", "ID KIND:OPTION… [title=] as NAME", "a session/request_permission, without waiting; - for no options", 2, 99, []string{"title"}, false, true},
		{"request", "METHOD JSON [id=JSON] as NAME", "any request to the editor, without waiting", 2, 2, []string{"id"}, false, true},
		{"notify", "METHOD JSON", "any notification", 2, 2, nil, false, false},
		{"await", "NAME|cancel|METHOD [within=D]", "wait for the answer to a request, for session/cancel, or for a frame of the editor", 1, 1, []string{"within"}, false, false},
		{"result", "JSON", "answer the request that is being handled", 1, 1, nil, false, false},
		{"error", "CODE 'MESSAGE'", "answer it with an error", 2, 2, nil, false, false},
		{"end", "STOP", "answer the prompt with a stop reason", 1, 1, nil, false, false},
		{"send", "'LINE'", "a line as it is", 1, 1, nil, false, false},
		{"write", "'BYTES'", "bytes as they are, with the escapes of Go, and no newline", 1, 1, nil, false, false},
		{"stderr", "'TEXT' [bytes=N]", "write to stderr, so often that it makes N bytes", 1, 1, []string{"bytes"}, false, false},
		{"pause", "D", "let time pass", 1, 1, nil, false, false},
		{"repeat", "N { }", "do it N times; $I counts from 1", 1, 1, nil, true, false},
		{"join", "{ }", "write all of it with one call", 0, 0, nil, true, false},
		{"split", "N { }", "write it in pieces of N bytes", 1, 1, nil, true, false},
		{"go", "{ }", "do it beside what follows", 0, 0, nil, true, false},
		{"exit", "CODE", "exit", 1, 1, nil, false, false},
		{"die", "", "end by SIGKILL", 0, 0, nil, false, false},
		{"close", "", "close the output and live on", 0, 0, nil, false, false},
		{"fork", "", "start a child that outlives its parent", 0, 0, nil, false, false},
		{"ignore", "eof|term", "do not end at the end of the input, or on SIGTERM", 1, 1, nil, false, false},
	}
}

func agentActNames() []string {
	var names []string
	for _, a := range agentActs() {
		names = append(names, a.name)
	}
	return names
}

// agentHelp is the page of the agent-side language.
func agentHelp() string {
	var b strings.Builder
	b.WriteString(`A file that begins with "role agent" scripts the agent; acp-test editors and
acp-test serve run it. What no handler is for is answered as a plain agent would.

  tag NAME…  timeout D  capabilities PATH=VALUE…  rules off ID 'reason'
  on EVENT [~ 'REGEXP'] [nth=N] { … }
      EVENT is a method, or prompt, cancel, new, load, resume, close, connect, eof.
  check [REQUIREMENT…] SLUG
  [!] sent METHOD [count=N|>=N|<=N] [path=value…]
  [!] answered NAME [path=value…]    kind= is that of the option, error= a code
  [!] left-running                   a process of ours was left running

Acts in a handler, with $SESSION, $WORK (its cwd), $ID (of the request), $I, and
$NAME.path for what a request was answered, in quotes too:

`)
	for _, a := range agentActs() {
		fmt.Fprintf(&b, "  %-48s %s\n", strings.TrimSpace(a.name+" "+a.args), a.summary)
	}
	return b.String()
}

// agentEvents are short names of methods.
func agentEvent(name string) (string, bool) {
	short := map[string]string{"prompt": "session/prompt", "cancel": "session/cancel", "new": "session/new", "load": "session/load",
		"resume": "session/resume", "close": "session/close", "list": "session/list", "set-mode": "session/set_mode", "set-option": "session/set_config_option"}
	if long, ok := short[name]; ok {
		return long, true
	}
	return name, strings.Contains(name, "/") || slices.Contains([]string{"initialize", "authenticate", "logout", "connect", "eof"}, name)
}

// Files are the files of the workspace, by their names with slashes.
func (s *Scenario) Files() map[string][]byte { return s.files }
