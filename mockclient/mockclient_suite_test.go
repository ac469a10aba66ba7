package mockclient_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

var (
	self, _       = os.Executable()
	keeperCommand = []string{self, "keeper"}
)

// The test binary is also every program the tests start.
//
// The others leave by syscall.Exit: built with the race detector, os.Exit
// sleeps for a second first.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch program, ok := programs[os.Args[1]]; {
		case os.Args[1] == "keeper":
			syscall.Exit(process.KeeperMain(os.Args[2:]))
		case ok:
			syscall.Exit(program(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

func TestMockclient(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute) // the end of it is a failure, never a verdict on speed
	RunSpecs(t, "mockclient")
}

var programs = map[string]func(args []string) int{
	// agent-echo answers every request with {} until its input ends.
	"agent-echo": func([]string) int {
		p := newPeer(os.Stdin, os.Stdout)
		for {
			m, ok := p.read()
			if !ok {
				return 0
			}
			if m.id != "" {
				p.reply(m, `{}`)
			}
		}
	},
	// agent-deaf neither reads nor minds SIGTERM.
	"agent-deaf": func([]string) int {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		fmt.Println(`{"jsonrpc":"2.0","method":"ready"}`)
		select {}
	},
	// agent-polite does not mind the end of its input, but SIGTERM.
	"agent-polite": func([]string) int {
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println(`{"jsonrpc":"2.0","method":"ready"}`)
		<-term
		return 7
	},
	// agent-last writes frames and stderr and exits at once.
	"agent-last": func([]string) int {
		for i := range 1000 {
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"method\":\"m%d\"}\n", i)
		}
		fmt.Fprint(os.Stderr, "giving up\n")
		fmt.Print(`{"jsonrpc":"2.0","method":"torn`)
		return 3
	},
	// agent-parent starts a child of each kind, says so, and serves.
	"agent-parent": func(args []string) int {
		for _, kind := range args {
			child := exec.Command(os.Args[0], "child", kind)
			child.Env = os.Environ()
			if kind == "bare" { // without the run's environment
				child.Env = nil
				child.Env = append(child.Env, "A=b")
			}
			if kind == "setsid" || kind == "bare" {
				child.SysProcAttr = detached()
			}
			out, err := child.StdoutPipe()
			if err != nil || child.Start() != nil {
				return 4
			}
			_, _ = bufio.NewReader(out).ReadString('\n') // it runs
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"method\":\"child\",\"params\":{\"pid\":%d}}\n", child.Process.Pid)
		}
		fmt.Println(`{"jsonrpc":"2.0","method":"ready"}`)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	},
	// agent-pieces tells the longest read of one line.
	"agent-pieces": func([]string) int {
		buf, longest := make([]byte, 4096), 0
		for {
			n, err := os.Stdin.Read(buf)
			if err != nil {
				return 0
			}
			longest = max(longest, n)
			if buf[n-1] == '\n' {
				fmt.Printf("{\"jsonrpc\":\"2.0\",\"method\":\"longest\",\"params\":{\"n\":%d}}\n", longest)
			}
		}
	},
	// login is an agent's program that logs in when told to.
	"login": func(args []string) int {
		if len(args) == 1 && args[0] == "child-ok" && os.Getenv("L") == "1" && os.Getenv("K") == "k" {
			return 0
		}
		return 9
	},
	"child": func(args []string) int {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		fmt.Println("running", args)
		select {}
	},
	// harness runs an agent in a temporary directory and waits to be killed.
	"harness": func(args []string) int {
		self := []string{os.Args[0], "keeper"}
		temp, err := process.NewTempDir(self, args[0], args[1])
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		work := temp.Dir() + "/work"
		if err := os.MkdirAll(work, 0o700); err != nil {
			return 1
		}
		_, err = mockclient.Start(context.Background(), t, 0, mockclient.Command{
			Path: os.Args[0], Args: []string{"agent-parent", "setsid", "plain", "bare"}, Keeper: self,
			RemoveOnExit: work, RunID: args[1], Dir: work,
		})
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		o := t.Await(context.Background(), 0,
			transcript.First("ready", func(e transcript.Entry) bool { return e.Method == "ready" }))
		if !o.Met() {
			fmt.Println("error", o.Reason)
			return 1
		}
		line := "ready"
		for e := range t.All() {
			if e.Method == "child" {
				line += " " + e.JSON().Path("params.pid").Text()
			}
		}
		fmt.Println(line)
		select {}
	},
}

// peer is the agent's end of a connection, for agents written in the tests.
type peer struct {
	in *bufio.Reader
	mu sync.Mutex
	w  io.Writer
}

type msg struct {
	id     wire.ID
	method string
	v      wire.Value
}

func newPeer(in io.Reader, out io.Writer) *peer {
	return &peer{in: bufio.NewReaderSize(in, 1<<20), w: out}
}

func (p *peer) read() (msg, bool) {
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		return msg{}, false
	}
	v, err := wire.Parse(line[:len(line)-1])
	if err != nil {
		return msg{}, true
	}
	return msg{wire.ID(v.Get("id").Raw()), v.Get("method").Str(), v}, true
}

// until reads up to the next message with a method, or with an id if method is
// empty.
func (p *peer) until(method string, id wire.ID) msg {
	for {
		m, ok := p.read()
		if !ok {
			return msg{}
		}
		if method != "" && m.method == method || method == "" && m.method == "" && m.id == id {
			return m
		}
	}
}

func (p *peer) send(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}

func (p *peer) reply(m msg, result string) {
	p.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.id, result)
}

func (p *peer) update(session, update string) {
	p.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":%s}}`, session, update)
}

// ask sends a request and returns its answer.
func (p *peer) ask(id int, method, params string) msg {
	p.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	return p.until("", wire.ID(fmt.Sprint(id)))
}

// handshake answers initialize and session/new as session s.
func (p *peer) handshake() {
	p.handshakeWith(`{"protocolVersion":1,"agentCapabilities":{}}`)
}

func (p *peer) handshakeWith(result string) {
	p.reply(p.until("initialize", ""), result)
	p.reply(p.until("session/new", ""), `{"sessionId":"s"}`)
}

const permissionParams = `{"sessionId":"s","toolCall":{"toolCallId":"c1"},"options":[` +
	`{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"yess","name":"Always","kind":"allow_always"},` +
	`{"optionId":"no","name":"No","kind":"reject_once"},{"optionId":"never","name":"Never","kind":"reject_always"}]}`

type agentFunc func(p *peer)

func newTranscript() *transcript.Transcript {
	GinkgoHelper()
	t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	Expect(err).NotTo(HaveOccurred())
	return t
}

// edit starts an editor on an in-process agent, which ends with the test.
func edit(o mockclient.Options, agent agentFunc) *mockclient.Editor {
	GinkgoHelper()
	a := mockclient.InProcess(newTranscript(), 0, serve(agent))
	e := mockclient.NewEditor(a, o)
	DeferCleanup(func() {
		e.Close(context.Background())
		honest(e.Transcript())
	})
	return e
}

// honest judges the editor's own frames: they have the shape the protocol wants. (STDIO-002, and the shapes of all
// that a client sends.)
func honest(t *transcript.Transcript) {
	GinkgoHelper()
	for e := range t.All() {
		if e.Source != transcript.Editor || !e.Frame() {
			continue
		}
		var doc wire.Doc
		f := wire.ClassifyLine(&doc, e.Raw)
		Expect(f.Kind).NotTo(Equal(wire.Malformed), "%s", e.Raw)
		schema.V1().Check(schema.ToAgent, f, e.Method, func(p schema.Problem) {
			if p.Severity == schema.Fatal || p.Severity == schema.Lossy {
				Fail(fmt.Sprintf("the editor wrote %.300s: %s %s", e.Raw, p.Path, p.Message))
			}
		})
	}
}

func serve(agent agentFunc) func(context.Context, io.Reader, io.Writer) error {
	return func(_ context.Context, in io.Reader, out io.Writer) error {
		agent(newPeer(in, out))
		_, err := io.Copy(io.Discard, in)
		return err
	}
}

// open initializes and opens session s in dir.
func open(e *mockclient.Editor, dir string) *mockclient.Session {
	GinkgoHelper()
	_, err := e.Initialize(within())
	Expect(err).NotTo(HaveOccurred())
	s, err := e.NewSession(within(), mockclient.SessionOptions{Cwd: dir})
	Expect(err).NotTo(HaveOccurred())
	return s
}

// within is a context for what must happen soon; generous, because its end is
// a failure.
func within() context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), 2*time.Minute,
		fmt.Errorf("the test's patience ended"))
	DeferCleanup(cancel)
	return ctx
}

func named(method string) transcript.Expectation {
	return transcript.First(method, func(e transcript.Entry) bool { return e.Method == method })
}

func await(t *transcript.Transcript, x transcript.Expectation) transcript.Entry {
	GinkgoHelper()
	o := t.Await(within(), 0, x)
	Expect(o.Met()).To(BeTrue(), "%s: %s %v", x.Description, o.Reason, o.Cause)
	return o.Entry
}

// kinds lists the entries of a source, as "kind" or "kind detail".
func kinds(t *transcript.Transcript, sources ...transcript.Source) []string {
	var list []string
	for e := range t.All() {
		for _, s := range sources {
			if e.Source == s {
				list = append(list, string(e.Kind))
			}
		}
	}
	return list
}

func notes(t *transcript.Transcript) (list []mockclient.Note) {
	GinkgoHelper()
	for e := range t.All() {
		if e.Kind == transcript.Noted {
			var r mockclient.Note
			Expect(json.Unmarshal(e.Raw, &r)).To(Succeed())
			list = append(list, r)
		}
	}
	return list
}

func codes(t *transcript.Transcript) []string {
	var list []string
	for _, r := range notes(t) {
		list = append(list, r.Code)
	}
	return list
}
