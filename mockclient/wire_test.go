package mockclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

var _ = Describe("writing", func() {
	// taken runs act on an editor whose agent records each read.
	taken := func(act func(*mockclient.Editor)) (reads []string, e *mockclient.Editor) {
		done := make(chan struct{})
		start := make(chan struct{})
		a := mockclient.InProcess(newTranscript(), 0, func(_ context.Context, in io.Reader, _ io.Writer) error {
			defer close(done)
			<-start
			buf := make([]byte, 1<<20)
			for {
				n, err := in.Read(buf)
				if err != nil {
					return nil
				}
				reads = append(reads, string(buf[:n]))
			}
		})
		e = mockclient.NewEditor(a, mockclient.Options{})
		act(e)
		close(start)
		e.Close(within())
		<-done
		return reads, e
	}
	It("joins frames while they are coalesced", func() {
		reads, e := taken(func(e *mockclient.Editor) {
			Expect(e.Agent().WriteShape(within(), mockclient.Shape{Coalesce: true})).To(Succeed())
			_, err := e.Notify("a", nil)
			Expect(err).NotTo(HaveOccurred())
			c := e.Call("b", nil)
			Expect(c.Entry.Seq).To(BeNumerically(">", 0))
			Expect(e.Agent().Flush(within())).To(Succeed())
		})
		Expect(reads).To(Equal([]string{"{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n" +
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"b\"}\n"}))
		Expect(kinds(e.Transcript(), transcript.Editor)).
			To(Equal([]string{"notification", "request", "written", "written"}))
	})
	It("sends raw bytes as they are", func() {
		reads, e := taken(func(e *mockclient.Editor) {
			_, err := e.SendBytes([]byte(`{"jsonrpc"`))
			Expect(err).NotTo(HaveOccurred())
			_, err = e.Send([]byte("\xff"))
			Expect(err).NotTo(HaveOccurred())
		})
		Expect(strings.Join(reads, "")).To(Equal("{\"jsonrpc\"\xff\n"))
		Expect(kinds(e.Transcript(), transcript.Editor)).To(Equal([]string{"malformed", "malformed"}))
	})
	It("splits frames into reads of their own and loses nothing", func() {
		for _, n := range []int{1, 7} {
			pieces := make(chan string, 100)
			a := mockclient.InProcess(newTranscript(), 0, func(_ context.Context, in io.Reader, _ io.Writer) error {
				buf := make([]byte, 100)
				for {
					n, err := in.Read(buf)
					if err != nil {
						close(pieces)
						return nil
					}
					pieces <- string(buf[:n])
				}
			})
			e := mockclient.NewEditor(a, mockclient.Options{})
			Expect(a.WriteShape(within(), mockclient.Shape{Split: n})).To(Succeed())
			_, err := e.Notify("a", nil)
			Expect(err).NotTo(HaveOccurred())
			e.Close(within())
			all := ""
			for piece := range pieces {
				Expect(len(piece)).To(BeNumerically("<=", n))
				all += piece
			}
			Expect(all).To(Equal("{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n"))
		}
	})
	It("gives up on pieces for an agent that does not read", func() {
		reads, _ := taken(func(e *mockclient.Editor) {
			Expect(e.Agent().WriteShape(within(), mockclient.Shape{Split: 1})).To(Succeed())
			_, err := e.Notify("a", nil)
			Expect(err).NotTo(HaveOccurred())
		})
		Expect(strings.Join(reads, "")).To(Equal("{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n"))
	})
	It("notes a write that blocked and goes on", func() {
		start := make(chan struct{})
		a := mockclient.InProcess(newTranscript(), 0, func(_ context.Context, in io.Reader, _ io.Writer) error {
			<-start
			_, err := io.Copy(io.Discard, in)
			return err
		})
		e := mockclient.NewEditor(a, mockclient.Options{})
		defer e.Close(within())
		ctx, cancel := context.WithCancelCause(context.Background())
		go func() {
			e.Transcript().Await(context.Background(), 0, named("big"))
			cancel(errors.New("too slow"))
		}()
		c := e.CallContext(ctx, "big", strings.Repeat("x", 200<<10))
		Expect(c.Entry.Seq).To(BeNumerically(">", 0), "the write has begun")
		Expect(c.Done()).NotTo(BeClosed())
		close(start)
		_, err := e.NotifyContext(within(), "next", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(kinds(e.Transcript(), transcript.Editor)).To(Equal([]string{"request", "written", "notification"}))
	})
	It("notes a write that failed", func() {
		t := newTranscript()
		stop := make(chan struct{})
		a := mockclient.InProcess(t, 0, func(_ context.Context, in io.Reader, _ io.Writer) error {
			<-stop
			return nil
		})
		e := mockclient.NewEditor(a, mockclient.Options{})
		defer e.Close(within())
		failed := make(chan error, 1)
		go func() {
			_, err := e.Call("big", strings.Repeat("x", 200<<10)).Wait(context.Background())
			failed <- err
		}()
		await(t, named("big"))
		close(stop)
		Eventually(failed).Should(Receive(HaveOccurred()))
		Expect(kinds(t, transcript.Editor)).To(Equal([]string{"request", "written"}))
	})
})

var _ = Describe("reading", func() {
	It("keeps a burst of 100,000 updates and a line of 64 MiB whole and in order", Label("large"), func() {
		const n = 100_000
		e := edit(mockclient.Options{}, func(p *peer) {
			for i := range n {
				p.update("s", fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text",`+
					`"text":"%d"}}`, i))
			}
			p.update("s", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`+
				strings.Repeat("y", 64<<20)+`"}}`)
			p.send(`{"jsonrpc":"2.0","method":"end"}`)
		})
		await(e.Transcript(), named("end"))
		i := 0
		for f := range e.Transcript().All() {
			if acpframe.Update(f) == "" {
				continue
			}
			text := f.JSON().Path("params.update.content.text").Str()
			if i < n && text != fmt.Sprint(i) || i == n && len(text) != 64<<20 {
				Fail(fmt.Sprintf("update %d is %.20q, %d bytes", i, text, len(text)))
			}
			i++
		}
		Expect(i).To(Equal(n + 1))
	})
	It("loses nothing while it is stalled", func() {
		written := make(chan struct{})
		e := edit(mockclient.Options{}, func(p *peer) {
			p.read()
			for i := range 5000 {
				p.send(`{"jsonrpc":"2.0","method":"m%d"}`, i)
			}
			close(written)
			p.send(`{"jsonrpc":"2.0","method":"end"}`)
		})
		e.Agent().PauseReading()
		_, err := e.Notify("go", nil)
		Expect(err).NotTo(HaveOccurred())
		Consistently(written).WithTimeout(100 * time.Millisecond).ShouldNot(BeClosed())
		Expect(kinds(e.Transcript(), transcript.Agent)).To(BeEmpty())
		e.Agent().ResumeReading()
		await(e.Transcript(), named("end"))
		Expect(kinds(e.Transcript(), transcript.Agent)).To(HaveLen(5001))
	})
	It("answers an agent that asks without reading", func() {
		e := edit(mockclient.Options{}, func(p *peer) {
			for i := range 20_000 { // more than the pipes hold either way
				p.send(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, i)
			}
			p.until("", "19999")
			p.send(`{"jsonrpc":"2.0","method":"end"}`)
		})
		await(e.Transcript(), named("end"))
	})
})
