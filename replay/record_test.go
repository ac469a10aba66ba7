package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
)

// collector takes what a proxy writes; look is called before each write.
type collector struct {
	mu   sync.Mutex
	b    bytes.Buffer
	look func([]byte)
}

func (c *collector) Write(p []byte) (int, error) {
	if c.look != nil {
		c.look(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.Write(p)
}

func (c *collector) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String()
}

func logAt(file string) *transcript.Transcript {
	t, err := transcript.New(transcript.Header{},
		transcript.Options{Classifier: acpframe.Classifier{}, Path: file, Through: true,
			Redact: replay.Redaction{Protocol: recordings.V1()}.Func()})
	Expect(err).NotTo(HaveOccurred())
	return t
}

func command(args ...string) mockclient.Command {
	return mockclient.Command{Path: self(), Args: args, Env: os.Environ(), Keeper: keeper()}
}

// traffic is lines of all lengths, some of which are no JSON, and an
// unfinished one at the end.
func traffic(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	for i := range 400 {
		n := r.IntN(3000)
		if i%133 == 7 {
			n = 1<<20 + r.IntN(2<<20)
		}
		switch r.IntN(4) {
		case 0:
			fmt.Fprintf(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":{\"s\":%q}}\n", strings.Repeat("é", n/2))
		case 1:
			raw := make([]byte, n)
			for j := range raw {
				raw[j] = byte(r.IntN(256))
			}
			b.Write(raw)
			b.WriteByte('\n')
		case 2:
			b.WriteString("\r\n")
		default:
			fmt.Fprintf(&b, " {\"jsonrpc\" : \"2.0\", \"id\":%d,\"result\":null} \n", i)
		}
	}
	b.WriteString(`{"jsonrpc":"2.0","meth`)
	return b.Bytes()
}

var _ = Describe("record", func() {
	It("passes every byte on and logs every line", Label("large"), func() {
		file := filepath.Join(GinkgoT().TempDir(), "r.jsonl")
		log := logAt(file)
		want := traffic(1)
		out := &collector{}
		r, w := io.Pipe()
		go func() { // in pieces that have nothing to do with lines
			rng := rand.New(rand.NewPCG(2, 2))
			for rest := want; len(rest) > 0; {
				n := min(len(rest), 1+rng.IntN(100_000))
				_, _ = w.Write(rest[:n])
				rest = rest[n:]
			}
			w.Close()
		}()
		exit, err := (&replay.Proxy{Agent: command("cat"), In: r, Out: out, Log: log}).Run(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(exit.Code).To(Equal(0))
		Expect(log.Close()).To(Succeed())
		Expect(bytes.Equal([]byte(out.String()), want)).
			To(BeTrue(), "the agent's echo should be what was sent, byte for byte")

		f, err := os.Open(file)
		Expect(err).NotTo(HaveOccurred())
		defer f.Close()
		loaded, err := transcript.Load(f, acpframe.Classifier{})
		Expect(err).NotTo(HaveOccurred())
		Expect(loaded.Torn()).To(BeFalse())
		for _, from := range []transcript.Source{transcript.Editor, transcript.Agent} {
			var got []byte
			for e := range loaded.All() {
				if e.Source == from && e.Frame() {
					got = append(append(got, e.Raw...), '\n')
				}
			}
			Expect(bytes.Equal(got, append(bytes.Clone(want), '\n'))).
				To(BeTrue(), "the log of the %s should hold the same lines", from)
		}
		last := loaded.At(loaded.Len())
		Expect(last.Kind).To(Equal(transcript.Exited))
	})

	It("hands each entry to the kernel before it forwards the frame", func() {
		file := filepath.Join(GinkgoT().TempDir(), "r.jsonl")
		var missing []string
		out := &collector{look: func(p []byte) {
			text, _ := os.ReadFile(file)
			for line := range bytes.Lines(p) {
				if want := bytes.TrimSpace(line); bytes.Count(text, want) < 2 { // once from each side
					missing = append(missing, string(want))
				}
			}
		}}
		var in bytes.Buffer
		for i := range 200 {
			fmt.Fprintf(&in, "{\"jsonrpc\":\"2.0\",\"method\":\"_n\",\"params\":{\"n\":\"<%d>\"}}\n", i)
		}
		log := logAt(file)
		_, err := (&replay.Proxy{Agent: command("cat"), In: &in, Out: out, Log: log}).Run(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(log.Close()).To(Succeed())
		Expect(missing).To(BeEmpty())
	})

	It("passes on stderr, exit status and signals", func() {
		dir := GinkgoT().TempDir()
		errs := &collector{}
		log := logAt(filepath.Join(dir, "a.jsonl"))
		exit, err := (&replay.Proxy{Agent: command("exit"), In: strings.NewReader(""), Out: io.Discard, Err: errs,
			Log: log}).Run(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(exit.Code).To(Equal(7))
		Expect(errs.String()).To(Equal("going\n"))
		Expect(log.Close()).To(Succeed())
		text, err := os.ReadFile(filepath.Join(dir, "a.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring(`"text":"going\n"`))

		signals := make(chan os.Signal, 1)
		out := &collector{look: func([]byte) { signals <- syscall.SIGUSR1 }}
		log = logAt(filepath.Join(dir, "b.jsonl"))
		exit, err = (&replay.Proxy{Agent: command("wait-for-signal"), In: strings.NewReader(""), Out: out,
			Signals: signals, Log: log}).Run(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(exit.Code).To(Equal(3))
		Expect(log.Close()).To(Succeed())
	})

	It("prints findings while it goes on", func() {
		log := logAt(filepath.Join(GinkgoT().TempDir(), "r.jsonl"))
		live := &collector{}
		in := strings.NewReader("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":{}}" +
			"\nnot json\n")
		_, err := (&replay.Proxy{Agent: command("cat"), In: in, Out: io.Discard, Log: log, Live: live, Judge: judge}).
			Run(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(live.String()).To(ContainSubstring("fail of the agent"))
		Expect(live.String()).To(ContainSubstring("#"))
	})

	It("leaves a whole file and no agent when it is killed", func() {
		for round := range 5 {
			file := filepath.Join(GinkgoT().TempDir(), "r.jsonl")
			cmd := exec.Command(self(), "proxy", file, self(), "cat")
			in, err := cmd.StdinPipe()
			Expect(err).NotTo(HaveOccurred())
			out, err := cmd.StdoutPipe()
			Expect(err).NotTo(HaveOccurred())
			Expect(cmd.Start()).To(Succeed())
			go func() {
				for i := 0; ; i++ {
					if _, err := fmt.Fprintf(in, "{\"jsonrpc\":\"2.0\",\"method\":\"_n\",\"params\":{\"n\":%d,"+
						"\"pad\":%q}}\n", i, strings.Repeat("x", i%5000)); err != nil {
						return
					}
				}
			}()
			passed := make([]byte, 20_000*(round+1))
			_, err = io.ReadFull(out, passed)
			Expect(err).NotTo(HaveOccurred())
			Expect(cmd.Process.Kill()).To(Succeed())
			rest, _ := io.ReadAll(out)
			_ = cmd.Wait()

			// The keeper ends what the kill interrupted: a line, and the agent.
			var loaded *transcript.Transcript
			Eventually(func(g Gomega) {
				f, err := os.Open(file)
				g.Expect(err).NotTo(HaveOccurred())
				defer f.Close()
				loaded, err = transcript.Load(f, acpframe.Classifier{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(loaded.Torn()).To(BeFalse())
			}, time.Minute).Should(Succeed())
			var got bytes.Buffer
			pid := 0
			for e := range loaded.All() {
				if e.Kind == transcript.Started {
					n, _ := e.JSON().Get("pid").Int()
					pid = int(n)
				}
				if e.Source == transcript.Agent {
					got.Write(append(e.Raw, '\n'))
				}
			}
			Expect(bytes.HasPrefix(got.Bytes(), append(passed, rest...))).
				To(BeTrue(), "what was passed on should be in the file")
			Eventually(func() error { return syscall.Kill(pid, 0) }, time.Minute).Should(MatchError(syscall.ESRCH))
		}
	})
})
