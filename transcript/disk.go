package transcript

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-test/acp-test/wire"
)

// disk is the file of a store. It collects lines in memory, and a goroutine
// hands them to the kernel in large writes. A file that is temporary or written
// through has no such goroutine. After the first error, disk writes nothing
// more, so that the file is valid up to its last complete line.
type disk struct {
	mu        *sync.Mutex // the transcript's lock; it protects pending, spare and end
	file      File
	through   bool
	temporary bool // the file only has entries that were moved out of memory
	gathers   bool // collect lines until handOver is called
	failed    func(error)

	pending []byte // lines that have not been handed to the kernel
	spare   []byte
	end     int64 // offset in the file at which pending will end

	wake, quit, stopped chan struct{} // nil if there is no goroutine

	writing sync.Mutex // locked during a write to the file, so that writes keep their order
	failure atomic.Pointer[error]
}

const (
	// backlog is how many bytes may wait for a slow disk. If there are more,
	// Append waits too.
	backlog = 4 << 20
	// collect is how long lines are collected before they are written together. A
	// write per line would cost more than everything else.
	collect = time.Millisecond
	// keepBuffer is the capacity in bytes of the largest buffer that is kept for
	// reuse. It is enough for a line of 8 MiB.
	keepBuffer = 4 * backlog
)

// File is the destination of a transcript: an empty file, such as an *os.File.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

func newDisk(f File, h Header, o Options, mu *sync.Mutex) *disk {
	d := &disk{mu: mu, file: f, through: o.Through, failed: o.Failed, pending: appendHeader(nil, h)}
	d.end = int64(len(d.pending))
	if d.through {
		d.flush()
		return d
	}
	d.wake, d.quit, d.stopped = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	d.wake <- struct{}{} // makes the goroutine write the header
	go d.run()
	return d
}

// temporaryDisk returns a disk with a temporary file. If the system allows it,
// the file has no name, so that it always disappears with this process.
func temporaryDisk(mu *sync.Mutex) (*disk, error) {
	f, err := os.CreateTemp("", "acp-test-transcript-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name())
	return &disk{mu: mu, file: f, temporary: true}, nil
}

// write appends an encoded entry to the pending lines.
func (d *disk) write(e Entry) {
	if d.err() != nil {
		return
	}
	n := len(d.pending)
	d.pending = appendEntry(d.pending, e)
	d.end += int64(len(d.pending) - n)
	if d.through && !d.gathers || len(d.pending) > backlog {
		d.flush()
		return
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// err returns the first error of writing the file, or nil.
func (d *disk) err() error {
	if err := d.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// put writes lines to the file. The caller must hold writing.
func (d *disk) put(lines []byte) {
	if d.err() != nil {
		return // a gap would make the later lines invalid
	}
	if _, err := d.file.Write(lines); err != nil {
		d.failure.Store(&err)
		if d.failed != nil {
			d.failed(err)
		}
	}
}

// flush hands all pending lines to the kernel, after the lines that the
// goroutine is writing.
func (d *disk) flush() {
	d.writing.Lock()
	defer d.writing.Unlock()
	if len(d.pending) > 0 {
		d.put(d.pending)
		d.pending = reuse(d.pending)
	}
}

// run writes in the background until quit is closed; flush must write the rest.
// run swaps buffers while holding the transcript's lock, and writes without it.
func (d *disk) run() {
	defer close(d.stopped)
	collected := time.NewTimer(collect)
	defer collected.Stop()
	for {
		select {
		case <-d.wake:
		case <-d.quit:
			return
		}
		collected.Reset(collect)
		select {
		case <-collected.C:
		case <-d.quit:
			return
		}
		d.mu.Lock()
		out := d.pending
		d.pending, d.spare = d.spare, nil
		d.writing.Lock()
		d.mu.Unlock()
		d.put(out)
		d.writing.Unlock()
		d.mu.Lock()
		d.spare = reuse(out)
		d.mu.Unlock()
	}
}

func reuse(b []byte) []byte {
	if cap(b) > keepBuffer {
		return nil
	}
	return b[:0]
}

// read returns the bytes of the file between two offsets. These bytes must have
// been flushed.
func (d *disk) read(off, end int64) ([]byte, error) {
	buf := make([]byte, end-off)
	_, err := io.ReadFull(io.NewSectionReader(d.file, off, end-off), buf)
	return buf, err
}

// stop ends the goroutine, if there is one. The caller must not hold the
// transcript's lock.
func (d *disk) stop() {
	if d.quit != nil {
		close(d.quit)
		<-d.stopped
	}
}

// close closes the file. If a write failed earlier, it first tries to write a
// last line with the error.
func (d *disk) close() error {
	if err := d.err(); err != nil && !d.temporary {
		line := appendEntry([]byte{'\n'}, lost(err))
		_, _ = d.file.Write(line) // if this fails too, the incomplete line shows the loss
	}
	return d.file.Close()
}

// lost returns an entry with the information that a file lacks all later
// entries.
func lost(err error) Entry {
	text := wire.AppendString([]byte(`{"code":"not-recorded","text":`),
		"this file lacks all later entries: "+err.Error())
	return Entry{Source: Note, Kind: Noted, Raw: append(text, '}'), sound: true}
}
