package replay_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
)

// judge2 judges editors by version 2.
var judge2 = replay.Judge{Protocol: recordings.V2(), Rules: acp.V2().Rules, Text: acp.V2().Canonical}

// client2 is a correct editor of version 2, as small as one can be. Its fields are habits
// that another one has not.
type client2 struct {
	id           func(n int) string // of the n-th request, as JSON
	more         string             // members that the params of its requests have, ",…"
	capabilities string
	choose       []string // kinds of options, in the order in which it takes them
	resumes      bool     // it resumes a session, and opens a new one if that fails
	cancels      string   // a kind of update after which it cancels, once
	closes       bool     // it closes its session at the end
	lists        bool
	prompts      int
	until        string // it stays until it has printed that

	// hear gets each message of the agent and returns what the editor hears in its place;
	// say the same of what it says. nil is no change.
	hear, say func(c *client2, m object) []object

	mu       sync.Mutex
	out      io.WriteCloser
	work     string
	n        int
	waiting  map[string]string // methods by the id of a request
	session  string
	methods  []any // to log in
	working  bool  // a prompt is open
	began    bool
	stopped  bool
	messages map[string]string
	printed  strings.Builder
	memory   map[string]any // of a fault
}

func (c *client2) write(m object) {
	list := []object{m}
	if c.say != nil {
		list = c.say(c, m)
	}
	for _, m := range list {
		c.raw(m)
	}
}

func (c *client2) raw(m object) {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	_, _ = c.out.Write(append(line, '\n')) // an agent that is gone
}

func (c *client2) request(method, params string) {
	id := fmt.Sprint(c.n)
	if c.id != nil {
		id = c.id(c.n)
	}
	c.n++
	c.waiting[id] = method
	c.write(object{"id": json.RawMessage(id), "method": method,
		"params": parsed("{" + strings.TrimPrefix(params+c.more, ",") + "}")})
}

func parsed(text string) object {
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(text + ": " + err.Error())
	}
	return o
}

// play talks to a scripted agent until its prompts have ended, and reports whether it had to
// be stopped.
func (c *client2) play(ctx context.Context, in io.Reader) (late bool) {
	c.waiting, c.messages, c.memory = map[string]string{}, map[string]string{}, map[string]any{}
	over := make(chan struct{})
	go func() {
		defer close(over)
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadBytes('\n')
			var m object
			if json.Unmarshal(line, &m) == nil && m != nil {
				list := []object{m}
				if c.hear != nil {
					list = c.hear(c, m)
				}
				for _, m := range list {
					if c.take(m) {
						return
					}
				}
			}
			if err != nil {
				return
			}
		}
	}()
	c.request("initialize", `"protocolVersion":2,"info":{"name":"small","version":"1"},"capabilities":`+
		pickText(c.capabilities != "", c.capabilities, "{}"))
	select {
	case <-over:
	case <-ctx.Done():
		late = true
	}
	c.out.Close()
	if late {
		<-over
	} else {
		go func() { _, _ = io.Copy(io.Discard, in) }()
	}
	return late
}

func pickText(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// take handles one message and reports whether that was the last.
func (c *client2) take(m object) (over bool) {
	method, _ := m["method"].(string)
	switch {
	case method != "" && m["id"] != nil:
		c.asked(m, method)
	case method == "session/update":
		return c.update(dig(m, "params", "update").(object))
	case method == "":
		id, _ := json.Marshal(m["id"])
		what := c.waiting[string(id)]
		delete(c.waiting, string(id))
		result, _ := m["result"].(object)
		failure, _ := m["error"].(object)
		return c.answered(what, result, failure)
	}
	return false
}

func (c *client2) asked(m object, method string) {
	if method != "session/request_permission" {
		c.write(object{"id": m["id"], "error": object{"code": -32601, "message": "no such method"}})
		return
	}
	if c.cancels == method {
		c.cancel()
	}
	outcome := object{"outcome": "cancelled"}
	kinds := c.choose
	if kinds == nil {
		kinds = []string{"allow_once", "reject_once"}
	}
	options, _ := dig(m, "params", "options").([]any)
	for _, k := range kinds {
		if o := kind(options, k); o != nil && !c.stopped {
			outcome = object{"outcome": "selected", "optionId": o.(object)["optionId"]}
			break
		}
	}
	c.write(object{"id": m["id"], "result": object{"outcome": outcome}})
}

func (c *client2) cancel() {
	if !c.stopped {
		c.stopped = true
		c.write(object{"method": "session/cancel", "params": object{"sessionId": c.session}})
	}
}

func (c *client2) open() {
	c.request("session/new", `"cwd":"`+c.work+`","mcpServers":[]`)
}

func (c *client2) prompt() {
	c.prompts--
	c.working, c.began = true, false
	c.request("session/prompt", `"sessionId":"`+c.session+`","prompt":[{"type":"text","text":"Say hello."}]`)
}

func (c *client2) answered(method string, result, failure object) (over bool) {
	switch method {
	case "initialize":
		if failure != nil || result["protocolVersion"] != 2.0 {
			return true
		}
		c.methods, _ = result["authMethods"].([]any)
		if c.lists {
			c.request("session/list", "")
		}
		if c.session = "session-1"; c.resumes {
			c.request("session/resume", `"sessionId":"session-1","cwd":"`+c.work+`","replayFrom":{"type":"start"}`)
			return false
		}
		c.open()
	case "session/new":
		if failure != nil {
			for _, m := range c.methods {
				if m.(object)["type"] == "agent" {
					c.request("auth/login", `"methodId":"`+m.(object)["methodId"].(string)+`"`)
					return false
				}
			}
			return true
		}
		c.session = result["sessionId"].(string)
		c.prompt()
	case "auth/login":
		if failure != nil {
			return true
		}
		c.open()
	case "session/resume":
		if failure != nil {
			c.open()
			return false
		}
		c.prompt()
	case "session/prompt":
		if failure != nil {
			return c.turnEnded()
		}
	case "session/close":
		return true
	}
	return false
}

func (c *client2) turnEnded() (over bool) {
	c.working, c.stopped = false, false
	switch {
	case c.prompts > 0:
		c.prompt()
	case c.until != "" && !strings.Contains(c.shown(), c.until):
	case c.closes:
		c.request("session/close", `"sessionId":"`+c.session+`"`)
	default:
		return true
	}
	return false
}

func (c *client2) shown() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.printed.String()
}

// print shows a text as it is now, below what was shown.
func (c *client2) print(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(&c.printed, "%s\n", text[:min(len(text), 1000)])
}

func (c *client2) update(u object) (over bool) {
	tag, _ := u["sessionUpdate"].(string)
	id, _ := u["messageId"].(string)
	switch tag {
	case "state_update":
		if u["state"] != "idle" {
			c.began = true
		} else if c.working && c.began {
			return c.turnEnded()
		}
	case "agent_message_chunk":
		text, _ := dig(u, "content", "text").(string)
		c.messages[id] += text
		c.print(c.messages[id])
	case "agent_message":
		if blocks, ok := u["content"].([]any); ok || u["content"] == nil {
			c.messages[id] = pickText(ok, "", pickText(has(u, "content"), "", c.messages[id]))
			for _, b := range blocks {
				c.messages[id] += b.(object)["text"].(string)
			}
			c.print(c.messages[id])
		}
	case "tool_call_update", "tool_call_content_chunk":
		raw, _ := json.Marshal(u)
		// As a user reads it.
		c.print(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(raw)))
	}
	if tag == c.cancels && c.working {
		c.cancel()
	}
	return !c.working && c.until != "" && c.prompts <= 0 && strings.Contains(c.shown(), c.until)
}

func has(o object, key string) bool {
	_, ok := o[key]
	return ok
}

// played2 plays a scenario for editors of version 2 to a client.
func played2(x *scenarios.Scenario, make func() *client2, patience time.Duration, times int) results.Result {
	GinkgoHelper()
	var sessions []replay.Session
	for range times {
		c := make()
		c.work = GinkgoT().TempDir()
		for name, data := range x.Workspace {
			Expect(os.WriteFile(filepath.Join(c.work, name), data, 0o600)).To(Succeed())
		}
		log, err := transcript.New(transcript.Header{Protocol: "2"}, transcript.Options{Classifier: recordings.V2()})
		Expect(err).NotTo(HaveOccurred())
		s := &serve.Server{Protocol: recordings.V2(), Script: &x.Agent.Script, Log: log,
			Child: func() error { return nil }}
		ctx, stop := context.WithTimeout(context.Background(), patience)
		in, out, done := dial(s)
		s.Die = func() { out.Close() }
		c.out = in
		late := c.play(ctx, out)
		<-done
		stop()
		out.Close()
		sessions = append(sessions, replay.Session{Log: log, Seen: &replay.Seen{Printed: c.shown(), Late: late}})
	}
	return judge2.Editor(results.Result{ID: x.ID}, x.Agent, sessions)
}

// part2 is how the correct client plays its part in a scenario.
func part2(scenario string) *client2 {
	c := &client2{prompts: 2}
	switch scenario {
	case "m05-after-the-turn":
		c.prompts, c.until = 1, `"status":"completed"`
	case "m08-permission-and-cancel":
		c.cancels = "session/request_permission"
	case "m09-cancelled":
		c.cancels = "agent_message_chunk"
	case "m09-cancel-ignored":
		c.prompts, c.cancels = 1, "agent_message_chunk"
	case "n01-repeated-idle", "n03-unknown-values":
		c.prompts = 1
	case "n11-background":
		c.prompts, c.until = 1, "It is done."
	case "n19-resume", "n20-resume-refused":
		c.resumes = true
	}
	return c
}

// forEditors2 are the scenarios for editors of version 2 that run in this process: not those
// about the process itself, and not the slow ones.
func forEditors2() (list []*scenarios.Scenario) {
	GinkgoHelper()
	all, err := acp.V2().ForEditors()
	Expect(err).NotTo(HaveOccurred())
	for _, x := range all {
		base := filepath.Base(x.ID)
		if !slices.Contains(x.Tags, "slow") && !strings.HasPrefix(base, "m10-") && !strings.HasPrefix(base, "m11-") &&
			!strings.HasPrefix(base, "m12-") && base != "m01-burst-long" && base != "m09-cancel-unanswered" {
			list = append(list, x)
		}
	}
	return list
}

// found2 returns what is held against the client of a result.
func found2(res results.Result) (names []string) {
	for _, c := range res.Checks {
		if c.Verdict != results.Pass && c.Verdict != results.Skip {
			names = append(names, strings.TrimPrefix(c.ID, "editors/"))
		}
	}
	for _, f := range res.Findings {
		client := strings.HasPrefix(f.Rule, "C-") || strings.HasPrefix(f.Rule, "V2-CLIENT-")
		if client && f.Class != results.Inconclusive && !slices.Contains(names, f.Rule) {
			names = append(names, f.Rule)
		}
	}
	return names
}

// habits2 are things that one correct editor of version 2 does and another does not.
var habits2 = map[string]func(c *client2){
	"no more than that":     func(*client2) {},
	"strings as ids":        func(c *client2) { c.id = func(n int) string { return fmt.Sprintf(`"r-%d"`, n) } },
	"large ids":             func(c *client2) { c.id = func(n int) string { return fmt.Sprint(9007199254740991 - n) } },
	"_meta everywhere":      func(c *client2) { c.more = `,"_meta":{"small.example/trace":"x"}` },
	"more capabilities":     func(c *client2) { c.capabilities = `{"elicitation":{"form":{}},"_meta":{"a":1}}` },
	"rejections":            func(c *client2) { c.choose = []string{"reject_once", "reject_always"} },
	"permissions cancelled": func(c *client2) { c.choose = []string{} },
	"choices for ever":      func(c *client2) { c.choose = []string{"allow_always", "allow_once", "reject_once"} },
	"a close at the end":    func(c *client2) { c.closes = true },
	"a list at the start":   func(c *client2) { c.lists = true },
	"a cancel after a call": func(c *client2) { c.cancels = "tool_call_update" },
	"resumes where it can":  func(c *client2) { c.resumes = true },
	"one prompt":            func(c *client2) { c.prompts = 1 },
}

var _ = Describe("editors of version 2", Ordered, Label("large"), func() {
	It("are blamed for nothing that is theirs to choose", func() {
		type trial struct{ name, text string }
		list := forEditors2()
		var wait sync.WaitGroup
		blamed := make(chan trial, len(habits2)*len(list))
		slots := make(chan struct{}, 8)
		for name, habit := range habits2 {
			for _, x := range proof.Share(list) {
				if slices.Contains(x.Tags, "cancel") && strings.HasPrefix(x.ID, "editors/m0") &&
					name == "a cancel after a call" {
					continue // these wait for a cancel at another time
				}
				slots <- struct{}{}
				wait.Go(func() {
					defer GinkgoRecover()
					defer func() { <-slots }()
					res := played2(x, func() *client2 {
						c := part2(filepath.Base(x.ID))
						habit(c)
						return c
					}, time.Minute, 1)
					if names := found2(res); len(names) > 0 {
						blamed <- trial{name + ": " + x.ID, shown(res)}
					}
				})
			}
		}
		wait.Wait()
		close(blamed)
		for t := range blamed {
			Fail(t.name + "\n" + t.text)
		}
	})

	found := make([]results.Result, len(careless2))
	BeforeAll(func() {
		list := forEditors2()
		slots := make(chan struct{}, 8) // most of it is waiting
		var done sync.WaitGroup
		for n, fault := range careless2 {
			i := slices.IndexFunc(list, func(x *scenarios.Scenario) bool { return x.ID == "editors/"+fault.scenario })
			Expect(i).To(BeNumerically(">=", 0), fault.scenario)
			patience, times := time.Minute, 1
			if fault.hangs {
				patience = 10 * time.Second
			}
			if fault.restarts {
				times = 2
			}
			slots <- struct{}{}
			done.Go(func() {
				defer GinkgoRecover()
				defer func() { <-slots }()
				found[n] = played2(list[i], func() *client2 {
					c := part2(fault.scenario)
					c.hear, c.say = fault.hear, fault.say
					return c
				}, patience, times)
			})
		}
		done.Wait()
	})
	for n, fault := range careless2 {
		It("are found where they err: "+fault.name, func() {
			Expect(found2(found[n])).To(ConsistOf(fault.reddens), shown(found[n]))
		})
	}
})
