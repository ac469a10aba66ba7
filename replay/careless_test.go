package replay_test

import (
	"bufio"
	"bytes"
	"cmp"
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

	"github.com/acp-test/acp-test/internal/bugs"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

type object = map[string]any

// careless is an editor with one fault: ours, with something between it and the
// agent.
type careless struct {
	name     string   // kebab case, unique
	scenario string   // which shows it
	reddens  []string // the checks and rules that find it, exactly
	// hear gets each message of the agent and returns what the editor hears in its
	// place; say the same of what the editor says. nil is no change.
	hear, say func(e *editing, m object) []object
	handlers  map[string]func(*mockclient.Request)
	// waits is an editor that waits for ever where ours is told that the agent has
	// ended, or where it leaves. restarts is one that starts the agent anew after
	// its turn; leaves-running one that does not end it.
	waits, restarts, leavesRunning bool
}

// editing is one editor at work.
type editing struct {
	fault   careless
	gone    chan struct{} // closed when the editor gives up
	once    sync.Once
	memory  map[string]any    // of a fault
	asked   map[string]object // the agent's requests, by id
	mu      sync.Mutex
	printed strings.Builder
	message any // the messageId of what was printed last
}

// giveUp ends the editor's part, as one does that waits for nothing any more.
func (e *editing) giveUp() { e.once.Do(func() { close(e.gone) }) }

// leave gives up once the agent has waited for so long that its request and the end of its input did not cross.
func (e *editing) leave() { time.AfterFunc(1100*time.Millisecond, e.giveUp) }

// print shows what a user sees: texts, modes, commands, and content of tool calls.
func (e *editing) print(m object) {
	u, _ := dig(m, "params", "update").(object)
	e.mu.Lock()
	defer e.mu.Unlock()
	if modes := dig(m, "result", "modes"); modes != nil {
		fmt.Fprintf(&e.printed, "\n%v\n", modes)
	}
	switch u["sessionUpdate"] {
	case "agent_message_chunk", "user_message_chunk":
		if e.message != u["messageId"] {
			e.printed.WriteString("\n")
		}
		e.message = u["messageId"]
		text, _ := dig(u, "content", "text").(string)
		e.printed.WriteString(text[:min(len(text), 1000)])
	case "available_commands_update", "tool_call_update", "tool_call":
		if raw, err := json.Marshal(u); err == nil &&
			(u["sessionUpdate"] != "tool_call_update" || u["content"] != nil) {
			fmt.Fprintf(&e.printed, "\n%s\n", raw)
		}
	}
}

// dig is the value at a path of keys, nil if there is none.
func dig(v any, path ...string) any {
	for _, key := range path {
		o, _ := v.(object)
		v = o[key]
	}
	return v
}

// pass reads lines and hands on what through makes of them.
func pass(from io.Reader, to io.Writer, through func(m object) []object) {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes('\n')
		var m object
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if d.Decode(&m) == nil && m != nil {
			line = nil
			for _, m := range through(m) {
				raw, err := json.Marshal(m)
				if err != nil {
					panic(err)
				}
				line = append(append(line, raw...), '\n')
			}
		}
		if _, failed := to.Write(line); failed != nil || err != nil {
			return
		}
	}
}

// connect serves a script to an editor, with the fault between them.
func (e *editing) connect(script *language.AgentScript, log, view *transcript.Transcript) *mockclient.Editor {
	s := server(script)
	s.Log = log
	s.Child = func() error { return nil }
	agent := mockclient.InProcess(view, 0, func(ctx context.Context, in io.Reader, out io.Writer) error {
		said, say := io.Pipe()
		hear, heard := io.Pipe()
		s.In, s.Out, s.Err = said, heard, io.Discard
		ctx, die := context.WithCancel(ctx)
		defer die()
		s.Die = die
		go func() {
			pass(in, say, func(m object) []object { return e.through(e.fault.say, m) })
			say.Close()
		}()
		var done sync.WaitGroup
		done.Go(func() {
			pass(hear, out, func(m object) []object {
				e.mu.Lock()
				e.asked[key(m["id"])] = m
				e.mu.Unlock()
				list := e.through(e.fault.hear, m)
				for _, m := range list {
					e.print(m)
				}
				return list
			})
			_, _ = io.Copy(io.Discard, hear)
		})
		code := s.Serve(ctx)
		heard.Close()
		said.Close()
		done.Wait()
		if code != 0 {
			return fmt.Errorf("exit status %d", code)
		}
		return nil
	})
	// Where it cannot allow, ours rejects.
	policy := &mockclient.Policy{Rules: []mockclient.Rule{
		{Offers: mockclient.AllowOnce, Answer: mockclient.Answer{Kind: mockclient.AllowOnce}},
		{Offers: mockclient.RejectOnce, Answer: mockclient.Answer{Kind: mockclient.RejectOnce}}}}
	return mockclient.NewEditor(agent, mockclient.Options{Policy: policy, Handlers: e.fault.handlers,
		Terminals: &mockclient.Terminals{Real: true, Allow: []string{"*"}, Env: os.Environ()}})
}

func (e *editing) through(change func(e *editing, m object) []object, m object) []object {
	e.mu.Lock()
	defer e.mu.Unlock()
	if change == nil {
		return []object{m}
	}
	return change(e, m)
}

// drive plays the part of the editor's user, until the agent has said what it says.
func (e *editing) drive(ctx context.Context, editor *mockclient.Editor, view *transcript.Transcript, work string) {
	if _, err := editor.Initialize(ctx); err != nil {
		return
	}
	var session *mockclient.Session
	var err error
	switch e.fault.scenario {
	case "m04-load":
		session, err = editor.LoadSession(ctx, "session-1", mockclient.SessionOptions{Cwd: work})
	case "m21-load-refused", "m26-load-refused-resume":
		session, err = editor.EnsureSession(ctx, "session-0", mockclient.SessionOptions{Cwd: work})
	default:
		session, err = editor.NewSession(ctx, mockclient.SessionOptions{Cwd: work})
	}
	if err == nil && e.fault.scenario == "m23-loaded-modes" {
		session, err = editor.LoadSession(ctx, "session-0", mockclient.SessionOptions{Cwd: work})
	}
	if err != nil {
		return
	}
	if e.fault.scenario == "m18-modes" {
		for _, mode := range []string{"ask", "code", "ask"} {
			_ = session.SetMode(ctx, mode) // one of them is refused
		}
	}
	await := func(seq int, x transcript.Expectation) { view.Await(ctx, seq, x) }
	stops, ok := turns[e.fault.scenario]
	if !ok {
		stops = []string{""}
	}
	for _, stop := range stops {
		turn := session.Prompt(ctx, mockclient.Text("Say hello "+time.Now().String()))
		if stop != "" {
			if stop == "permission" {
				await(turn.Entry.Seq, mockclient.PermissionRequested())
			} else {
				await(turn.Entry.Seq, mockclient.Updated(stop))
			}
			_, _ = session.Cancel()
		}
		if e.fault.scenario == "m09-cancel-unanswered" {
			return
		}
		if _, err := turn.Wait(ctx); err != nil && ctx.Err() != nil {
			return
		}
	}
	switch e.fault.scenario {
	case "m04-load":
		await(0, mockclient.MessageSaid("later <10>"))
	case "m05-after-the-turn":
		await(0, mockclient.Updated("tool_call_update"))
	case "m10-exit-idle":
		<-editor.Agent().Exited()
	}
}

// turns are the prompts of a scenario: after what the user stops each, "" for not.
// Others have one turn that nobody stops.
var turns = map[string][]string{
	"m08-permission-and-cancel": {"permission"},
	"m09-cancel-error":          {"agent_message_chunk", "agent_message_chunk"},
	"m09-cancel-ignored":        {"agent_message_chunk"},
	"m09-cancel-unanswered":     {"agent_message_chunk"},
	"m09-cancelled":             {"agent_message_chunk", ""},
	"m14-request-ids":           {"", ""},
}

// edit plays a shipped scenario to the editor and returns what found something, with
// its class.
func edit(fault careless) map[string]results.Verdict {
	GinkgoHelper()
	list, err := acp.V1().ForEditors()
	Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(list, func(x *scenarios.Scenario) bool { return x.ID == "editors/"+fault.scenario })
	Expect(i).To(BeNumerically(">=", 0), "no scenario %s", fault.scenario)
	work := GinkgoT().TempDir()
	for name, data := range list[i].Workspace {
		Expect(os.WriteFile(filepath.Join(work, name), data, 0o600)).To(Succeed())
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var sessions []replay.Session
	for {
		e := &editing{fault: fault, gone: make(chan struct{}), memory: map[string]any{}, asked: map[string]object{}}
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		view, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		Expect(err).NotTo(HaveOccurred())
		editor := e.connect(list[i].Agent, log, view)
		driven := make(chan struct{})
		ctx, leave := context.WithCancel(ctx)
		go func() {
			defer close(driven)
			e.drive(ctx, editor, view, work)
		}()
		select {
		case <-driven:
		case <-e.gone:
		}
		leave()
		<-driven
		editor.Close(context.Background())
		e.mu.Lock()
		one := replay.Session{Log: log, Seen: &replay.Seen{Printed: e.printed.String(), Late: fault.waits}}
		e.mu.Unlock()
		if fault.leavesRunning {
			one.Left = []string{"the agent"}
		}
		sessions = append(sessions, one)
		if !fault.restarts || len(sessions) > 1 {
			break
		}
	}
	res := judge.Editor(results.Result{ID: "editors/" + fault.scenario}, list[i].Agent, sessions)
	found := map[string]results.Verdict{}
	for _, c := range res.Checks {
		if c.Verdict != results.Pass && c.Verdict != results.Skip {
			found[c.ID] = c.Verdict
		}
	}
	for _, f := range res.Findings {
		if strings.HasPrefix(f.Rule, "C-") && f.Class != results.Inconclusive {
			found[f.Rule] = f.Class
		}
	}
	return found
}

// always answers each request with the same.
func always(result any) func(*mockclient.Request) {
	return func(r *mockclient.Request) { r.Reply(result) }
}

var _ = Describe("a careless editor", Ordered, Label("large"), func() {
	found := map[string]map[string]results.Verdict{} // by fault; of ours by scenario
	BeforeAll(func() {
		all := slices.Clone(carelessEditors)
		for _, fault := range carelessEditors {
			if ours := (careless{scenario: fault.scenario}); !slices.ContainsFunc(all, ours.is) {
				all = append(all, ours)
			}
		}
		outcomes := make([]map[string]results.Verdict, len(all))
		slots := make(chan struct{}, 8) // most of it is waiting
		var done sync.WaitGroup
		for i, fault := range all {
			slots <- struct{}{}
			done.Go(func() {
				defer GinkgoRecover()
				defer func() { <-slots }()
				outcomes[i] = edit(fault)
			})
		}
		done.Wait()
		for i, fault := range all {
			found[cmp.Or(fault.name, fault.scenario)] = outcomes[i]
		}
	})
	for _, fault := range carelessEditors {
		It("is found: "+fault.name, func() {
			Expect(found[fault.scenario]).To(BeEmpty(), "our own editor")
			var names []string
			for name := range found[fault.name] {
				names = append(names, strings.TrimPrefix(name, "editors/"))
			}
			Expect(names).To(ConsistOf(fault.reddens), "%v", found[fault.name])
		})
	}

	It("is found with the classes of the record of public bugs", func() {
		for _, b := range bugs.All() {
			if b.By != bugs.Editor {
				continue
			}
			for _, name := range b.Faults {
				Expect(found).To(HaveKey(name), "bug %d", b.Number)
				Expect(slices.ContainsFunc(b.Found, func(f bugs.Finder) bool { return found[name][f.Name] != 0 })).
					To(BeTrue(),
						"bug %d: nothing finds %s", b.Number, name)
			}
			for _, f := range b.Found {
				var classes []string
				for _, name := range b.Faults {
					classes = append(classes, found[name][f.Name].String())
				}
				Expect(classes).To(ContainElement(f.Class), "bug %d: %s", b.Number, f.Name)
			}
		}
	})
})

// is reports whether two are the same one.
func (c careless) is(other careless) bool {
	return c.name == other.name && c.scenario == other.scenario
}
