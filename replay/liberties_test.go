package replay_test

import (
	"bufio"
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
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// client is a correct editor, as small as one can be: one prompt, files and
// permissions as its habits have them, and an end.
type client struct {
	capabilities string             // clientCapabilities
	id           func(n int) string // of the n-th request, as JSON
	answer       func(c *client, id, method string,
		p jsonObject) // how a request is answered; nil answers in the plain way
	more      string        // members that each of its objects may have, ",…"
	info      bool          // clientInfo
	cancelAt  string        // a kind of update after which it cancels, once
	patience  time.Duration // after which it cancels by itself
	idle      bool          // it cancels where nothing runs
	prompts   int           // how many, 0 is 1
	leaves    string        // a kind of update after which it ends the input, the turn still open
	leavesToo bool          // it ends the input right after its cancel
	slow      time.Duration // over each frame
	extension bool          // it sends notifications of its own
	loads     bool          // it loads a session where it can

	work    string
	in      io.WriteCloser
	n       int
	waiting map[string]string
	session string
	stopped bool
}

type jsonObject = map[string]any

// refuse answers requests of some methods with an error.
func refuse(code int, methods ...string) func(*client, string, string, jsonObject) {
	return func(c *client, id, method string, p jsonObject) {
		if slices.ContainsFunc(methods, func(m string) bool { return strings.HasPrefix(method, m) }) {
			c.fail(id, code)
			return
		}
		c.plain(id, method, p)
	}
}

// choose answers permissions with an option that pick finds, else with cancelled.
func choose(pick func(options []any) any) func(*client, string, string, jsonObject) {
	return func(c *client, id, method string, p jsonObject) {
		if method == "session/request_permission" && !c.stopped {
			options, _ := p["options"].([]any)
			if o := pick(options); o != nil {
				c.result(id, jsonObject{"outcome": jsonObject{"outcome": "selected",
					"optionId": o.(jsonObject)["optionId"]}})
				return
			}
		}
		c.plain(id, method, p)
	}
}

func (c *client) send(members string) { fmt.Fprintf(c.in, `{"jsonrpc":"2.0",%s}`+"\n", members) }

func (c *client) result(id string, v any) {
	b, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	c.send(`"id":` + id + `,"result":` + string(b))
}

func (c *client) fail(id string, code int) {
	c.send(fmt.Sprintf(`"id":%s,"error":{"code":%d,"message":"no"}`, id, code))
}

func (c *client) request(method, params string) {
	id := fmt.Sprint(c.n)
	if c.id != nil {
		id = c.id(c.n)
	}
	c.n++
	c.waiting[id] = method
	c.send(`"id":` + id + `,"method":"` + method + `","params":{` + params + c.more + `}`)
}

// plain answers as a client does that has files on a disk and no terminals.
func (c *client) plain(id, method string, p jsonObject) {
	path, _ := p["path"].(string)
	within := strings.HasPrefix(path, c.work+"/") && !strings.Contains(path, "..")
	switch {
	case method == "session/request_permission":
		c.result(id, jsonObject{"outcome": jsonObject{"outcome": "cancelled"}})
	case method == "fs/write_text_file" && within:
		Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
		Expect(os.WriteFile(path, []byte(p["content"].(string)), 0o600)).To(Succeed())
		c.result(id, jsonObject{})
	case method == "fs/read_text_file" && within:
		data, err := os.ReadFile(path)
		if err != nil {
			c.fail(id, -32002)
			return
		}
		lines := strings.SplitAfter(string(data), "\n")
		if line, ok := p["line"].(float64); ok {
			lines = lines[min(max(int(line)-1, 0), len(lines)):]
		}
		if limit, ok := p["limit"].(float64); ok {
			lines = lines[:min(int(limit), len(lines))]
		}
		c.result(id, jsonObject{"content": strings.Join(lines, "")})
	case strings.HasPrefix(method, "fs/"):
		c.fail(id, -32602)
	default:
		c.fail(id, -32601)
	}
}

func (c *client) prompt() {
	c.request("session/prompt", `"sessionId":"`+c.session+`","prompt":[{"type":"text","text":"Say hello."}]`)
}

func (c *client) cancel() {
	if !c.stopped {
		c.stopped = true
		c.send(`"method":"session/cancel","params":{"sessionId":"` + c.session + `"}`)
	}
}

// play talks to a scripted agent until one of them ends.
func (c *client) play(out io.Reader) {
	defer c.in.Close()
	c.waiting = map[string]string{}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			lines <- line
		}
	}()
	defer func() {
		go func() {
			for range lines {
				continue
			}
		}()
	}()
	info, capabilities := "", ""
	if c.capabilities != "" {
		capabilities = `,"clientCapabilities":` + c.capabilities
	}
	if c.info {
		info = `,"clientInfo":{"name":"small","version":"1"}`
	}
	c.request("initialize", `"protocolVersion":1`+capabilities+info)
	impatient := make(<-chan time.Time)
	if c.patience > 0 {
		impatient = time.After(c.patience)
	}
	const longest = 15 * time.Second // it waits for a line; 12 MiB on a busy machine take a while
	end := time.NewTimer(longest)
	defer end.Stop()
	for {
		select {
		case line, open := <-lines:
			if !open || c.take(line) {
				return
			}
			time.Sleep(c.slow)
			end.Reset(longest)
		case <-impatient:
			if c.session != "" {
				c.cancel()
			}
		case <-end.C:
			return
		}
	}
}

// take handles one line and reports whether that was the last.
func (c *client) take(line string) bool {
	var m struct {
		ID     json.RawMessage
		Method string
		Params jsonObject
		Result jsonObject
		Error  *struct{ Code int }
	}
	if json.Unmarshal([]byte(line), &m) != nil {
		return false // noise
	}
	update, _ := m.Params["update"].(jsonObject)
	switch {
	case m.Method != "" && m.ID != nil:
		if c.answer != nil {
			c.answer(c, string(m.ID), m.Method, m.Params)
		} else {
			c.plain(string(m.ID), m.Method, m.Params)
		}
	case m.Method != "":
		if c.cancelAt != "" && update["sessionUpdate"] == c.cancelAt && c.session != "" {
			c.cancel()
			if c.leavesToo {
				return true
			}
		}
		if c.leaves != "" && update["sessionUpdate"] == c.leaves {
			return true
		}
	default:
		return c.answered(c.waiting[string(m.ID)], m.Result, m.Error != nil)
	}
	return false
}

func (c *client) answered(method string, result jsonObject, failed bool) (over bool) {
	switch {
	case method == "initialize" && !failed:
		if result["protocolVersion"] != 1.0 {
			return true
		}
		if c.extension {
			c.send(`"method":"_small/hello","params":{}`)
		}
		able, _ := result["agentCapabilities"].(jsonObject)
		if c.loads && able["loadSession"] == true {
			c.session = "earlier"
			c.request("session/load", `"sessionId":"earlier","cwd":"`+c.work+`","mcpServers":[]`)
			break
		}
		c.request("session/new", `"cwd":"`+c.work+`","mcpServers":[]`)
	case method == "session/load" && failed:
		c.request("session/new", `"cwd":"`+c.work+`","mcpServers":[]`)
	case method == "session/new" && !failed, method == "session/load":
		if method == "session/new" {
			c.session = result["sessionId"].(string)
		}
		if c.idle {
			c.send(`"method":"session/cancel","params":{"sessionId":"` + c.session + `"}`)
		}
		c.prompt()
	case method == "session/prompt" && c.prompts > 1:
		c.prompts--
		c.prompt()
	default:
		return true
	}
	return false
}

const files = `{"fs":{"readTextFile":true,"writeTextFile":true}}`

// liberties are things that one correct editor does and another does not.
var liberties = map[string]client{
	"nothing but the protocol's core": {capabilities: `{}`, answer: refuse(-32601, "fs/", "terminal/")},
	"no capabilities at all":          {answer: refuse(-32601, "fs/", "terminal/")},
	"files":                           {capabilities: files},
	"reading only": {capabilities: `{"fs":{"readTextFile":true}}`,
		answer: refuse(-32601, "fs/write", "terminal/")},
	"an unknown capability": {capabilities: `{"_meta":{"small":true}}`,
		answer: refuse(-32601, "fs/", "terminal/")},
	"files refused as parameters": {capabilities: files, answer: refuse(-32602, "fs/")},
	"files refused as not found":  {capabilities: files, answer: refuse(-32002, "fs/")},
	"the first option":            {capabilities: files, answer: choose(func(o []any) any { return at(o, 0) })},
	"the last option": {capabilities: files,
		answer: choose(func(o []any) any { return at(o, len(o)-1) })},
	"a way to reject": {capabilities: files,
		answer: choose(func(o []any) any { return kind(o, "reject_once") })},
	"a way to allow": {capabilities: files,
		answer: choose(func(o []any) any { return kind(o, "allow_once") })},
	"strings as ids": {capabilities: files, id: func(n int) string { return fmt.Sprintf(`"r-%d"`, n) }},
	"large ids": {capabilities: files,
		id: func(n int) string { return fmt.Sprint(9007199254740992 + n) }},
	"ids that count down":           {capabilities: files, id: func(n int) string { return fmt.Sprint(-1 - n) }},
	"a name":                        {capabilities: files, info: true},
	"_meta everywhere":              {capabilities: files, more: `,"_meta":{"small.example/trace":"x"}`},
	"a cancel after the first text": {capabilities: files, cancelAt: "agent_message_chunk"},
	"a cancel after a tool call":    {capabilities: files, cancelAt: "tool_call"},
	"a cancel after a second":       {capabilities: files, patience: 200 * time.Millisecond},
	"a cancel while nothing runs":   {capabilities: files, idle: true},
	"two prompts":                   {capabilities: files, prompts: 2},
	"leaving in the middle":         {capabilities: files, leaves: "agent_message_chunk"},
	"leaving with a tool call":      {capabilities: files, leaves: "tool_call"},
	"leaving with a cancel":         {capabilities: files, cancelAt: "tool_call", leavesToo: true},
	"a pause over each frame":       {capabilities: files, slow: time.Millisecond},
	"an extension of its own":       {capabilities: files, extension: true},
	"loading":                       {capabilities: files, loads: true},
}

func at(options []any, i int) any {
	if len(options) == 0 {
		return nil
	}
	return options[i]
}

func kind(options []any, kind string) any {
	i := slices.IndexFunc(options, func(o any) bool { return o.(jsonObject)["kind"] == kind })
	if i < 0 {
		return nil
	}
	return options[i]
}

// judged plays one scenario to a client.
func judged(x *scenarios.Scenario, c client) results.Result {
	GinkgoHelper()
	c.work = GinkgoT().TempDir()
	for name, data := range x.Workspace {
		Expect(os.WriteFile(filepath.Join(c.work, name), data, 0o600)).To(Succeed())
	}
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	s := server(x.Agent)
	s.Log = log
	in, out, done := dial(s)
	c.in = in
	c.play(out)
	<-done
	out.Close()
	return judge.Editor(results.Result{ID: x.ID}, x.Agent, []replay.Session{{Log: log}})
}

// Habits hold in every scenario for editors: what only some correct editors do is
// no fault of the others.
var _ = Describe("a correct editor with habits of its own", func() {
	It("is blamed by no scenario", Label("large"), func() {
		list, err := acp.V1().ForEditors()
		Expect(err).NotTo(HaveOccurred())
		var wait sync.WaitGroup
		blamed := make(chan string, len(liberties)*len(list))
		for name, habits := range liberties {
			wait.Go(func() {
				defer GinkgoRecover()
				for _, x := range proof.Share(list) {
					if beside(x, name) {
						continue
					}
					r := judged(x, habits)
					bad := func(v results.Verdict) bool {
						return slices.Contains([]results.Verdict{results.Fail, results.Warn, results.Error}, v)
					}
					if bad(r.Verdict) || slices.ContainsFunc(r.Findings,
						func(f results.Finding) bool { return bad(f.Class) }) ||
						slices.ContainsFunc(r.Checks, func(k results.Check) bool { return bad(k.Verdict) }) {
						blamed <- name + ": " + x.ID + "\n" + shown(r)
					}
				}
			})
		}
		wait.Wait()
		close(blamed)
		for text := range blamed {
			Fail(text)
		}
	})
})

var _ = It("an editor that refuses to read files has no line ends that could be wrong", Label("large"), func() {
	list, err := acp.V1().ForEditors()
	Expect(err).NotTo(HaveOccurred())
	x := list[slices.IndexFunc(list, func(x *scenarios.Scenario) bool { return x.ID == "editors/m15-line-ends" })]
	for _, k := range judged(x, client{answer: refuse(-32601, "fs/")}).Checks {
		Expect(k.Verdict).NotTo(Equal(results.Lint), k.ID)
	}
})

// beside reports whether a scenario is left out with some habits: what ends the
// process cannot run in this one, what waits for a cancel waits long without, and
// large frames are the same for all.
func beside(x *scenarios.Scenario, name string) bool {
	habits := liberties[name]
	return slices.Contains(x.Tags, "slow") || x.ID == "editors/m11-stubborn-tree" ||
		x.ID == "editors/m08-permission-and-cancel" && name == "a cancel after the first text" ||
		strings.HasPrefix(x.ID, "editors/m10-") ||
		slices.Contains(x.Tags, "cancel") && habits.cancelAt != "agent_message_chunk" && habits.patience == 0 &&
			habits.leaves == "" && !habits.leavesToo ||
		// These ask whether the connection is still there.
		(strings.HasPrefix(x.ID, "editors/m01-") || x.ID == "editors/m12-noise") && habits.leaves != "" ||
		(x.ID == "editors/m12-long-lines" || x.ID == "editors/m01-burst-long") && name != "files"
}

func shown(r results.Result) string {
	var b strings.Builder
	for _, k := range r.Checks {
		fmt.Fprintf(&b, "%s %s", k.Verdict, k.ID)
		if k.Failure != nil {
			b.WriteString("\n" + k.Failure.Text("  "))
		}
		b.WriteByte('\n')
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s %s %v\n%s\n", f.Class, f.Rule, f.Message, f.Entries, strings.Join(f.Tail, "\n"))
	}
	return b.String()
}
