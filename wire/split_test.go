package wire_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/wire"
)

// lines reads everything and copies it.
func lines(s *wire.Splitter) (all []wire.Line, err error) {
	for {
		line, err := s.Next()
		if err != nil {
			return all, err
		}
		line.Bytes = bytes.Clone(line.Bytes)
		all = append(all, line)
	}
}

// cut is what a splitter must make of a text.
func cut(text []byte, maxLine int) []wire.Line {
	var all []wire.Line
	for len(text) > 0 {
		line, rest, terminated := bytes.Cut(text, []byte("\n"))
		all = append(all, wire.Line{Bytes: bytes.Clone(line[:min(len(line), maxLine)]), Terminated: terminated,
			Size: len(line)})
		text = rest
	}
	return all
}

// pieces is a reader that returns so many bytes at a time, then err.
type pieces struct {
	text  []byte
	sizes []byte
	err   error
}

func (p *pieces) Read(into []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, p.err
	}
	size := len(p.text)
	if len(p.sizes) > 0 {
		size, p.sizes = int(p.sizes[0]), append(p.sizes[1:len(p.sizes):len(p.sizes)], p.sizes[0])
	}
	n := copy(into, p.text[:min(size, len(p.text))])
	p.text = p.text[n:]
	if len(p.text) == 0 && len(p.sizes)%2 == 0 {
		return n, p.err // the last bytes and the error at once
	}
	return n, nil
}

var _ = Describe("Splitter", func() {
	It("returns lines, the unterminated one too, then the end", func() {
		got, err := lines(wire.NewSplitter(strings.NewReader("a\r\n\n{}\nrest"), 0))
		Expect(err).To(Equal(io.EOF))
		Expect(got).To(Equal([]wire.Line{
			{Bytes: []byte("a\r"), Terminated: true, Size: 2},
			{Bytes: []byte{}, Terminated: true, Size: 0},
			{Bytes: []byte("{}"), Terminated: true, Size: 2},
			{Bytes: []byte("rest"), Size: 4},
		}))
	})

	It("keeps the head of a line beyond the limit and counts the rest", func() {
		text := strings.Repeat("x", 300_000) + "\nok\n" + strings.Repeat("y", 200_000)
		got, err := lines(wire.NewSplitter(iotest.HalfReader(strings.NewReader(text)), 10))
		Expect(err).To(Equal(io.EOF))
		Expect(got).To(Equal(cut([]byte(text), 10)))
		Expect(got[0].Size).To(Equal(300_000))
	})

	It("cuts a line that does not end", func() {
		endless := io.LimitReader(repeat('x'), 600<<20)
		got, err := lines(wire.NewSplitter(endless, 10_000))
		Expect(err).To(Equal(io.EOF))
		Expect(got).To(HaveLen(3))
		total := 0
		for _, line := range got {
			Expect(line.Size).To(BeNumerically("<=", 257<<20))
			total += line.Size
		}
		Expect(total).To(Equal(600 << 20))
	})

	It("tells a line of just the limit from a longer one", func() {
		for size := range 5 {
			text := strings.Repeat("x", size) + "\n" + strings.Repeat("z", size)
			got, _ := lines(wire.NewSplitter(strings.NewReader(text), 2))
			Expect(got).To(Equal(cut([]byte(text), 2)), "size %d", size)
		}
	})

	It("takes a line of 64 MiB whole by default", func() {
		long := bytes.Repeat([]byte("0123456789abcdef"), 4<<20)
		s := wire.NewSplitter(io.MultiReader(bytes.NewReader(long), strings.NewReader("\nnext\n")), 0)
		line, err := s.Next()
		Expect(err).NotTo(HaveOccurred())
		Expect(line.Size).To(Equal(64 << 20))
		Expect(bytes.Equal(line.Bytes, long)).To(BeTrue())
		line, _ = s.Next()
		Expect(string(line.Bytes)).To(Equal("next"))
	})

	It("returns the error of the reader after what came before it", func() {
		broken := errors.New("broken pipe")
		s := wire.NewSplitter(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 0)
		got, err := lines(s)
		Expect(err).To(Equal(broken))
		Expect(got).To(HaveLen(2))
		Expect(got[1].Terminated).To(BeFalse())
		_, err = s.Next()
		Expect(err).To(Equal(broken))
	})

	It("gives up on a reader that returns nothing for ever", func() {
		_, err := wire.NewSplitter(&pieces{text: []byte("a"), sizes: []byte{0}}, 0).Next()
		Expect(err).To(Equal(io.ErrNoProgress))
	})

	It("needs memory for the limit, not for the line", func() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		line, err := wire.NewSplitter(io.LimitReader(repeat('x'), 100<<20), 1<<10).Next()
		runtime.ReadMemStats(&after)
		Expect(err).NotTo(HaveOccurred())
		Expect(line.Bytes).To(HaveLen(1 << 10))
		Expect(line.Size).To(Equal(100 << 20))
		Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", 1<<20))
	})
})

type repeat byte

func (r repeat) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = byte(r)
	}
	return len(into), nil
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), []byte{1, 2}, uint8(2))
	f.Add([]byte("{}\r\n{}"), []byte{}, uint8(200))
	f.Add(bytes.Repeat([]byte("long line "), 50), []byte{7, 1, 255}, uint8(20))
	f.Fuzz(func(t *testing.T, text, sizes []byte, limit uint8) {
		maxLine := int(limit) + 1
		if len(sizes) > 0 && bytes.Count(sizes, []byte{0}) > 50 {
			return // a reader may not return nothing that often
		}
		if len(sizes) > 0 && len(bytes.Trim(sizes, "\x00")) == 0 {
			return
		}
		got, err := lines(wire.NewSplitter(&pieces{text, sizes, io.EOF}, maxLine))
		if err != io.EOF {
			t.Fatal(err)
		}
		if want := cut(text, maxLine); !reflect.DeepEqual(got, want) {
			t.Fatalf("text %q in pieces %v:\ngot  %v\nwant %v", text, sizes, got, want)
		}
	})
}
