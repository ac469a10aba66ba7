package replay

import (
	"bytes"
	"io"
	"sync"

	"github.com/acp-test/acp-test/transcript"
)

const (
	// whole is the longest line that is held back until its entry is with the
	// kernel. A longer one is forwarded while it is still coming, and its entry
	// is written meanwhile.
	whole = 1 << 20
	// kept is how much of a line is recorded.
	kept = 256 << 20
	// readSize is what a pipe holds, so that one read can empty it.
	readSize = 64 << 10
)

// book is the log of both directions. While the entry of a long line is being
// made, the lock keeps everything behind it that came after it.
type book struct {
	t     *transcript.Transcript
	order sync.Mutex
}

// frames logs whole lines, in one go.
func (b *book) frames(from transcript.Source, lines []byte) {
	lines = bytes.Clone(lines) // the transcript keeps them
	b.order.Lock()
	defer b.order.Unlock()
	for len(lines) > 0 {
		line := lines
		if i := bytes.IndexByte(lines, '\n'); i >= 0 {
			line, lines = lines[:i:i], lines[i+1:]
		} else {
			lines = nil
		}
		b.t.AppendFrame(0, from, line, 0)
	}
}

// long logs a line in the background; what is logged next waits for it.
func (b *book) long(from transcript.Source, line []byte, size int) {
	b.order.Lock()
	go func() {
		defer b.order.Unlock()
		if size == len(line) {
			size = 0
		}
		b.t.AppendFrame(0, from, line, size)
	}()
}

// wait returns when nothing is being logged in the background.
func (b *book) wait() {
	b.order.Lock()
	b.order.Unlock() //nolint:staticcheck // the lock is what it waits for
}

// pump forwards one direction byte for byte and logs its lines.
type pump struct {
	book *book
	from transcript.Source
	r    io.Reader
	w    io.Writer

	buf  []byte
	n    int    // bytes of buf in use: the beginning of a line
	big  []byte // the line that is being forwarded already
	size int    // how long it is so far; 0: none is
}

// run forwards until the end of the input, and reports whether that is why it
// ended: else the output could not be written.
func (p *pump) run() (ended bool) {
	p.buf = make([]byte, 2*readSize)
	for {
		if p.n == len(p.buf) {
			p.buf = append(p.buf, make([]byte, len(p.buf))...)
		}
		m, err := p.r.Read(p.buf[p.n:])
		if !p.take(m) {
			return false
		}
		if err != nil {
			return p.finish()
		}
	}
}

// take deals with m new bytes behind those in use.
func (p *pump) take(m int) bool {
	fresh := p.buf[p.n : p.n+m]
	p.n += m
	if p.size > 0 {
		i := bytes.IndexByte(fresh, '\n')
		if i < 0 {
			p.keep(fresh)
			p.n = 0
			return p.write(fresh)
		}
		p.keep(fresh[:i])
		p.book.long(p.from, p.big, p.size)
		p.big, p.size = nil, 0
		if !p.write(fresh[:i+1]) {
			return false
		}
		p.n = copy(p.buf, fresh[i+1:])
		fresh = p.buf[:p.n]
	}
	if last := bytes.LastIndexByte(fresh, '\n'); last >= 0 {
		end := p.n - len(fresh) + last + 1
		p.book.frames(p.from, p.buf[:end])
		if !p.write(p.buf[:end]) {
			return false
		}
		p.n = copy(p.buf, p.buf[end:p.n])
	}
	if p.n > whole {
		p.big = make([]byte, 0, 4*whole)
		p.keep(p.buf[:p.n])
		ok := p.write(p.buf[:p.n])
		p.n = 0
		p.buf = make([]byte, 2*readSize)
		return ok
	}
	return true
}

// keep remembers more of a long line.
func (p *pump) keep(b []byte) {
	p.size += len(b)
	if room := kept - len(p.big); len(b) > room {
		b = b[:room]
	}
	p.big = append(p.big, b...)
}

// finish deals with what stands after the last newline.
func (p *pump) finish() bool {
	if p.size > 0 {
		p.book.long(p.from, p.big, p.size)
		return true
	}
	if p.n > 0 {
		p.book.frames(p.from, p.buf[:p.n])
		return p.write(p.buf[:p.n])
	}
	return true
}

func (p *pump) write(b []byte) bool {
	_, err := p.w.Write(b)
	return err == nil
}

// chunks forwards stderr at once and logs it by lines, so that a secret is
// never cut in two where it could not be found.
type chunks struct {
	t *transcript.Transcript
	r io.Reader
	w io.Writer
}

func (c *chunks) run() {
	var held []byte
	buf := make([]byte, 32<<10)
	log := func(b []byte) {
		if len(b) > 0 {
			c.t.Append(transcript.Entry{Source: transcript.Stderr, Kind: transcript.Chunk, Raw: bytes.Clone(b)})
		}
	}
	for {
		n, err := c.r.Read(buf)
		if n > 0 && c.w != nil {
			_, _ = c.w.Write(buf[:n]) // an editor that does not look misses nothing
		}
		held = append(held, buf[:n]...)
		end := bytes.LastIndexByte(held, '\n') + 1
		if end == 0 && len(held) > whole {
			end = len(held)
		}
		if err != nil {
			log(held)
			return
		}
		log(held[:end])
		held = append(held[:0], held[end:]...)
	}
}
