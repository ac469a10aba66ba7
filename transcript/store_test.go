package transcript_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

func loaded(path string) *transcript.Transcript {
	GinkgoHelper()
	f, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	t, err := transcript.Load(f, acpframe.Classifier{})
	Expect(err).NotTo(HaveOccurred())
	return t
}

var _ = Describe("A transcript's file", func() {
	var path string
	BeforeEach(func() { path = filepath.Join(GinkgoT().TempDir(), "transcript.jsonl") })

	It("holds everything once it is closed, and says the same as Save", func() {
		t := with(transcript.Options{Path: path})
		for i := range 1000 {
			agent(t, update(i))
		}
		Expect(t.Close()).To(Succeed())
		Expect(t.Close()).To(Succeed())
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(bytes.Equal(text, saved(t))).To(BeTrue())
	})

	It("holds all of the frames before AppendFrames returns, with Through, and not one by one", func() {
		t := with(transcript.Options{Path: path, Through: true})
		size := func() int64 {
			info, err := os.Stat(path)
			Expect(err).NotTo(HaveOccurred())
			return info.Size()
		}
		before, lines := size(), []string{`{"jsonrpc":"2.0","id":1,"method":"a"}`, "noise",
			`{"jsonrpc":"2.0","method":"b"}`}
		t.AppendFrames(2, transcript.Editor, func(yield func([]byte) bool) {
			for _, l := range lines {
				Expect(size()).To(Equal(before))
				if !yield([]byte(l)) {
					return
				}
			}
		})
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(string(text), "\n")).To(Equal(4))
		var kinds []transcript.Kind
		for e := range t.All() {
			Expect([]any{e.Conn, e.Source, string(e.Raw)}).To(Equal([]any{2, transcript.Editor, lines[e.Seq-1]}))
			kinds = append(kinds, e.Kind)
		}
		Expect(kinds).To(Equal([]transcript.Kind{transcript.Request, transcript.Malformed, transcript.Notification}))
		t.AppendFrame(2, transcript.Agent, []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`), 0)
		Expect(size()).To(BeNumerically(">", len(text)), "a single frame is not kept back afterwards")
	})

	It("holds each entry before Append returns, with Through", func() {
		t := with(transcript.Options{Path: path, Through: true})
		defer t.Close()
		for i := range 3 {
			Expect(loaded(path).Len()).To(Equal(i))
			agent(t, update(i))
		}
		Expect(loaded(path).At(3)).To(Equal(t.At(3)))
	})

	It("gets its entries soon without being asked", func() {
		t := with(transcript.Options{Path: path})
		defer t.Close()
		agent(t, update(1))
		Eventually(func() int {
			text, _ := os.ReadFile(path)
			return bytes.Count(text, []byte("\n"))
		}).Should(Equal(2))
	})

	It("replaces an older one, and stays as it was after Close", func() {
		Expect(os.WriteFile(path, []byte(strings.Repeat("old\n", 10_000)), 0o600)).To(Succeed())
		t := with(transcript.Options{Path: path})
		note(t, "a")
		Expect(t.Close()).To(Succeed())
		note(t, "b")
		Expect(t.Len()).To(Equal(2))
		Expect(loaded(path).Len()).To(Equal(1))
	})

	It("must be in a folder that is there", func() {
		_, err := transcript.New(transcript.Header{},
			transcript.Options{Classifier: acpframe.Classifier{}, Path: filepath.Join(path, "no", "folder")})
		Expect(err).To(MatchError(ContainSubstring("making the transcript's file: open ")))
	})

	It("gets redacted entries, observers the originals", func() {
		redact := func(e transcript.Entry) transcript.Entry {
			if bytes.Contains(e.Raw, []byte("sk-1")) {
				e.Raw = bytes.ReplaceAll(e.Raw, []byte("sk-1"), []byte("***"))
				e.Redacted = append(e.Redacted, "key")
			}
			return e
		}
		t := with(transcript.Options{Path: path, Redact: redact})
		var seen string
		t.Observe(func(e transcript.Entry) { seen += string(e.Raw) })
		t.Event(0, transcript.Model, transcript.ModelRequest, "", map[string]string{"key": "sk-1"})
		Expect(t.Close()).To(Succeed())
		Expect(seen).To(Equal(`{"key":"sk-1"}`))
		e := loaded(path).At(1)
		Expect([]any{string(e.Raw), e.Redacted}).To(Equal([]any{`{"key":"***"}`, []string{"key"}}))
		Expect(string(saved(t))).NotTo(ContainSubstring("sk-1"))
	})

	It("survives a redaction that spoils the JSON", func() {
		t := with(transcript.Options{Path: path, Redact: func(e transcript.Entry) transcript.Entry {
			e.Raw = []byte("}{")
			return e
		}})
		agent(t, update(1))
		Expect(t.Close()).To(Succeed())
		Expect(string(loaded(path).At(1).Raw)).To(Equal("}{"))
	})
})

// narrow is a file that has no room for some of its writes.
type narrow struct {
	bytes.Reader // nothing is read back
	text         []byte
	full         bool
}

func (f *narrow) Write(b []byte) (int, error) {
	if !f.full {
		f.text = append(f.text, b...)
		return len(b), nil
	}
	f.text = append(f.text, b[:len(b)/2]...)
	return len(b) / 2, errors.New("no room")
}

func (f *narrow) Close() error { return nil }

var _ = Describe("A full disk", func() {
	It("is told at once, once, and in the file when there is room again; what was written can be read", func() {
		f, told := &narrow{}, 0
		t := with(transcript.Options{File: f, Through: true, Failed: func(err error) {
			Expect(err).To(MatchError("no room"))
			told++
		}})
		agent(t, update(1))
		f.full = true
		agent(t, update(2))
		Expect(told).To(Equal(1))
		agent(t, update(3))
		f.full = false
		agent(t, update(4))
		Expect(t.Close()).To(MatchError(ContainSubstring("no room")))
		Expect(told).To(Equal(1))
		Expect(t.Len()).To(Equal(4))
		again, err := transcript.Salvage(bytes.NewReader(f.text), acpframe.Classifier{}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Len()).To(Equal(2))
		Expect(again.Skipped()).To(HaveLen(1))
		Expect(again.Skipped()[0].Line).To(Equal(3))
		Expect(string(again.At(2).Raw)).To(ContainSubstring("this file lacks all later entries: no room"))
	})

	It("keeps nobody from going on who wants to be told", func() {
		var told error
		t, err := transcript.New(transcript.Header{},
			transcript.Options{Path: "/dev/full", Through: true, Failed: func(err error) { told = err }})
		Expect(err).NotTo(HaveOccurred())
		Expect(told).To(MatchError(ContainSubstring("no space left")))
		agent(t, update(1))
		Expect(t.Len()).To(Equal(1))
	})

	BeforeEach(func() {
		if _, err := os.Stat("/dev/full"); err != nil {
			Skip("this system has no /dev/full")
		}
	})

	It("shows in Err and Close, and loses nothing in memory", func() {
		t := with(transcript.Options{Path: "/dev/full", Memory: 1000})
		for i := range 100 {
			agent(t, update(i))
		}
		Eventually(t.Err).Should(MatchError(ContainSubstring("no space left")))
		Expect(t.Close()).To(MatchError(ContainSubstring("no space left")))
		i := 0
		for e := range t.All() {
			Expect(string(e.Raw)).To(Equal(update(i)))
			i++
		}
		Expect(i).To(Equal(100))
	})

	It("is found at once with Through", func() {
		_, err := transcript.New(transcript.Header{},
			transcript.Options{Classifier: acpframe.Classifier{}, Path: "/dev/full", Through: true})
		Expect(err).To(MatchError(ContainSubstring("no space left")))
	})
})

var _ = Describe("A transcript larger than its memory", func() {
	It("reads the same as one that is not, whatever its size and file", func() {
		dir := GinkgoT().TempDir()
		n := 0
		rapid.Check(GinkgoTB(), func(r *rapid.T) {
			n++
			path := ""
			if rapid.Bool().Draw(r, "file") {
				path = filepath.Join(dir, fmt.Sprint(n))
			}
			o := transcript.Options{Path: path, Memory: rapid.IntRange(1, 20_000).Draw(r, "memory"),
				Through: rapid.Bool().Draw(r, "through"), Now: ticks(1000)}
			small, err := transcript.New(transcript.Header{}, o)
			if err != nil {
				r.Fatal(err)
			}
			large, _ := transcript.New(transcript.Header{}, transcript.Options{Now: ticks(1000)})
			check := func(seq int) {
				if err := same(small.At(seq), large.At(seq)); err != nil {
					r.Fatalf("entry %d: %v", seq, err)
				}
			}
			for range rapid.IntRange(0, 300).Draw(r, "entries") {
				raw := []byte(strings.Repeat("x", rapid.IntRange(0, 300).Draw(r, "size")))
				if rapid.Bool().Draw(r, "JSON") {
					raw = []byte(rapid.SampledFrom([]string{update(len(raw)),
						`{"jsonrpc":"2.0","id":{"a":1,"msg":{}},"method":"m"}`,
						`{"jsonrpc":"2.0","id":",\"msg\":{","method":",\"msg\":{}}"}`}).Draw(r, "frame"))
				}
				small.AppendFrame(0, transcript.Agent, raw, 0)
				large.AppendFrame(0, transcript.Agent, raw, 0)
				check(rapid.IntRange(1, small.Len()).Draw(r, "at"))
			}
			if rapid.Bool().Draw(r, "closed") {
				if err := small.Close(); err != nil {
					r.Fatal(err)
				}
				small.AppendFrame(0, transcript.Agent, []byte("late"), 0)
				large.AppendFrame(0, transcript.Agent, []byte("late"), 0)
			}
			for seq := range large.Len() + 1 {
				check(seq)
			}
			if !bytes.Equal(saved(small), saved(large)) {
				r.Fatal("saved, they differ")
			}
			if err := small.Close(); err != nil {
				r.Fatal(err)
			}
		})
	})

	It("is awaited, judged, observed and matched as a whole", func() {
		t := with(transcript.Options{Memory: 2000})
		note(t, "first")
		for i := range 2000 {
			agent(t, update(i))
		}
		Expect(t.Await(over(), 0, a("first")).Entry.Seq).To(Equal(1))
		chunk := transcript.First("chunk 7", func(e transcript.Entry) bool {
			return e.JSON().Path("params.update.content.text").Is("chunk 7 of the answer ")
		})
		Expect(t.Judge(0, -1, chunk).Entry.Seq).To(Equal(9))
		Expect(t.Await(over(), 0, chunk).Entry.Seq).To(Equal(9))
		Expect(t).To(chunk)
		seen := 0
		t.Observe(func(transcript.Entry) { seen++ })
		Expect(seen).To(Equal(2001))
	})

	It("stays within it, however long it gets", func() {
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		t := with(transcript.Options{Path: filepath.Join(GinkgoT().TempDir(), "t"), Memory: 4 << 20})
		defer t.Close()
		append := func(n int) {
			for i := range n {
				agent(t, update(i))
			}
		}
		append(20_000) // fills it
		before := heap()
		append(200_000)
		Expect(int64(heap())-int64(before)).To(BeNumerically("<", 8<<20), "200,000 entries of 400 bytes are 80 MB")
		Expect(string(t.At(12_345).Raw)).To(Equal(update(12_344)))
		Expect(t.Err()).NotTo(HaveOccurred())
	})

	It("is read by many while it grows", func() {
		t := with(transcript.Options{Path: filepath.Join(GinkgoT().TempDir(), "t"), Memory: 5000})
		defer t.Close()
		var all sync.WaitGroup
		for conn := range 4 {
			all.Go(func() {
				for i := range 500 {
					t.AppendFrame(conn, transcript.Agent, []byte(update(i)), 0)
				}
			})
			all.Go(func() {
				next := 1
				for t.Len() < 2000 {
					for e := range t.From(next) {
						if e.Seq != next || !e.JSON().Exists() {
							panic(fmt.Sprintf("got entry %d %q, want %d", e.Seq, e.Raw, next))
						}
						next++
					}
				}
			})
		}
		all.Wait()
		counts := map[int]int{}
		for e := range t.All() {
			Expect(string(e.Raw) == update(counts[e.Conn])).To(BeTrue(), "the order within a connection")
			counts[e.Conn]++
		}
		Expect(counts).To(Equal(map[int]int{0: 500, 1: 500, 2: 500, 3: 500}))
	})
})
