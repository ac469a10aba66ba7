package replay

import (
	"bytes"
	"io"
	"sync"

	"github.com/acp-test/acp-test/transcript"
)

const (
	// whole is the maximum size of a line that is forwarded only after its entry has been logged. A longer line is
	// forwarded while it still arrives, and logged when it is complete.
	whole = 1 << 20
	// kept is the maximum number of bytes of a line that are recorded.
	kept = 256 << 20
	// readSize is the capacity of a pipe, so that one read can empty it.
	readSize = 64 << 10
)

// book is the log of both directions. order is locked while a long line is logged, so that all later entries wait.
type book struct {
	t     *transcript.Transcript
	order sync.Mutex
}

// frames logs complete lines, all at once.
func (b *book) frames(from transcript.Source, lines []byte) {
	lines = bytes.Clone(lines) // the transcript keeps the lines
	b.order.Lock()
	defer b.order.Unlock()
	b.t.AppendFrames(0, from, func(yield func([]byte) bool) {
		for len(lines) > 0 {
			line := lines
			if i := bytes.IndexByte(lines, '\n'); i >= 0 {
				line, lines = lines[:i:i], lines[i+1:]
			} else {
				lines = nil
			}
			if !yield(line) {
				return
			}
		}
	})
}

// long logs a long line in the background. The next line waits until that is done.
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

// wait waits until no line is being logged in the background.
func (b *book) wait() {
	b.order.Lock()
	defer b.order.Unlock() // waiting for the lock is enough
}

// pump forwards one direction byte for byte and logs its lines.
type pump struct {
	book *book
	from transcript.Source
	r    io.Reader
	w    io.Writer

	buf   []byte
	n     int    // bytes in buf: the beginning of a line
	big   []byte // the recorded part of a long line that is being forwarded
	size  int    // bytes of the long line so far; 0 if none is being forwarded
	large int    // size of the longest such line in bytes, within limits
}

// run forwards bytes until the input ends, and then returns true. It returns false if writing the output fails.
func (p *pump) run() (ended bool) {
	p.buf = make([]byte, 2*readSize)
	for {
		into := p.room()
		m, err := p.r.Read(into)
		if !p.take(into[:m]) {
			return false
		}
		if err != nil {
			return p.finish()
		}
	}
}

// room returns free buffer space for the next bytes.
func (p *pump) room() []byte {
	if p.size > 0 && p.size < kept {
		if free := cap(p.big) - len(p.big); free < readSize {
			p.grow(2 * cap(p.big))
		}
		return p.big[len(p.big):min(cap(p.big), len(p.big)+4*readSize)]
	}
	if p.n == len(p.buf) {
		p.buf = append(p.buf, make([]byte, len(p.buf))...)
	}
	return p.buf[p.n:]
}

func (p *pump) grow(to int) {
	p.big = append(make([]byte, 0, min(to, kept+readSize)), p.big...)
}

// take handles new bytes. fresh must be part of the buffer that room returned.
func (p *pump) take(fresh []byte) bool {
	if p.size > 0 {
		return p.more(fresh)
	}
	p.n += len(fresh)
	if last := bytes.LastIndexByte(fresh, '\n'); last >= 0 {
		end := p.n - len(fresh) + last + 1
		p.book.frames(p.from, p.buf[:end])
		if !p.write(p.buf[:end]) {
			return false
		}
		p.n = copy(p.buf, p.buf[end:p.n])
	}
	if p.n <= whole {
		return true
	}
	p.grow(max(4*whole, p.large+readSize))
	p.big, p.size = append(p.big, p.buf[:p.n]...), p.n
	p.n, p.buf = 0, make([]byte, 2*readSize)
	return p.write(p.big)
}

// more handles new bytes of a long line that is being forwarded.
func (p *pump) more(fresh []byte) bool {
	i := bytes.IndexByte(fresh, '\n')
	part := fresh
	if i >= 0 {
		part = fresh[:i]
	}
	if p.size < kept { // otherwise the bytes are in buf, and are not recorded
		p.big = p.big[:len(p.big)+len(part)]
	}
	p.size += len(part)
	if i < 0 {
		return p.write(fresh)
	}
	next := bytes.Clone(fresh[i+1:]) // fresh is in the memory of the line, which the log will own
	p.large = max(p.large, min(p.size, 16*whole))
	// The line is logged before its last byte is sent. So no response to the line can be logged before it.
	p.book.long(p.from, p.big[:min(len(p.big), kept)], p.size)
	p.big, p.size, p.n = nil, 0, 0
	if !p.write(fresh[:i+1]) {
		return false
	}
	if len(p.buf) < len(next) {
		p.buf = make([]byte, len(next)+readSize)
	}
	copy(p.buf, next)
	return p.take(p.buf[:len(next)])
}

// finish logs and forwards the bytes after the last newline.
func (p *pump) finish() bool {
	if p.size > 0 {
		p.book.long(p.from, p.big[:min(len(p.big), kept)], p.size)
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

// chunks forwards stderr immediately. It logs only complete lines, so that a secret is never split between two
// entries and missed.
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
			_, _ = c.w.Write(buf[:n]) // ignore the error: the editor may not read stderr
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
