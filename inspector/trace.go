package inspector

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/acp-test/acp-test/transcript"
)

// trace is the server's index of a transcript: for each entry, its position in the file and its record. The file may
// still grow. If another file replaces it, the trace starts again from an empty index and increases its generation.
type trace struct {
	open     func() (*os.File, error)
	protocol func(version string) Protocol

	mu         sync.Mutex
	file       *os.File
	generation int
	head       transcript.Header
	of         Protocol
	decoder    *transcript.Decoder
	end        int64 // end of the last complete line in the file
	starts     []int64
	records    []record
	names      names
	skipped    int    // number of lines that are not entries
	problem    string // why the file cannot be read
	atEnd      bool
	rest       []byte // the beginning of an incomplete line
}

// chunk is the number of bytes that are read at a time.
const chunk = 1 << 20

// grow reads the new part of the file. It stops after the time budget, even if more is left.
func (t *trace) grow(budget time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.renew(); err != nil {
		t.problem = err.Error()
		return
	}
	t.problem, t.atEnd = "", false
	until := time.Now().Add(budget)
	buf := make([]byte, chunk)
	for !t.atEnd && (len(t.records) == 0 || time.Now().Before(until)) {
		n, err := t.file.ReadAt(buf, t.end+int64(len(t.rest)))
		t.take(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			t.atEnd = true
		case err != nil:
			t.problem, t.atEnd = err.Error(), true
		}
		if t.problem != "" {
			return
		}
	}
}

// renew opens the file if it is not open yet, or if another file has replaced it.
func (t *trace) renew() error {
	next, err := t.open()
	if err != nil {
		return err
	}
	is, err := next.Stat()
	if err == nil && t.file != nil {
		was, failed := t.file.Stat()
		if failed == nil && os.SameFile(was, is) && is.Size() >= t.end {
			return next.Close()
		}
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	if t.file != nil {
		t.file.Close() // opened only for reading
	}
	t.file, t.generation = next, t.generation+1
	t.decoder, t.end, t.starts, t.records, t.names, t.skipped, t.rest = nil, 0, nil, nil, names{}, 0, nil
	return nil
}

// take adds the entries in b, the next part of the file.
func (t *trace) take(b []byte) {
	if len(t.rest) > 0 {
		b = append(t.rest, b...)
	}
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			break
		}
		t.line(b[:i])
		t.end += int64(i) + 1
		b = b[i+1:]
		if t.problem != "" {
			return
		}
	}
	t.rest = bytes.Clone(b)
}

func (t *trace) line(line []byte) {
	if t.decoder == nil {
		head, err := transcript.DecodeHeader(line)
		if err != nil {
			t.problem = err.Error()
			return
		}
		t.head, t.of = head, t.protocol(head.Protocol)
		t.decoder = transcript.NewDecoder(t.of.Classifier)
		return
	}
	e, err := t.decoder.Next(line)
	if err != nil {
		t.skipped++
		return
	}
	t.starts = append(t.starts, t.end)
	t.records = append(t.records, t.names.record(e, t.of))
}

// length returns the number of entries read so far, and the generation.
func (t *trace) length() (n, generation int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.records), t.generation
}

func (t *trace) protocolOf() Protocol {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of
}

// entry reads one entry from the file, given its Seq.
func (t *trace) entry(seq int) (transcript.Entry, Protocol, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if seq < 1 || seq > len(t.starts) {
		return transcript.Entry{}, t.of, errors.New("there is no such entry")
	}
	from, to := t.starts[seq-1], t.end
	if seq < len(t.starts) {
		to = t.starts[seq]
	}
	buf := make([]byte, to-from)
	if _, err := t.file.ReadAt(buf, from); err != nil {
		return transcript.Entry{}, t.of, err
	}
	line, _, _ := bytes.Cut(buf, []byte("\n"))
	e, err := t.decoder.Again(seq, line)
	e.Ref = int(t.records[seq-1].ref)
	return e, t.of, err
}

// find returns the Seqs of the entries whose line in the file contains a text. It ignores case, and entries before
// the Seq from.
func (t *trace) find(text string, from int) []uint32 {
	t.mu.Lock()
	file, starts := t.file, append(slices.Clip(t.starts), t.end)
	t.mu.Unlock()
	needle, lines := bytes.ToLower([]byte(text)), len(starts)-1
	var found []uint32
	for first := max(from-1, 0); first < lines; {
		last := first + 1 // end of the lines in one chunk
		for last < lines && starts[last]-starts[first] < chunk {
			last++
		}
		to := starts[last]
		buf := make([]byte, to-starts[first])
		if _, err := file.ReadAt(buf, starts[first]); err != nil {
			return found
		}
		low := bytes.ToLower(buf)
		if len(low) != len(buf) {
			low = buf // lower case has another length: search the original
		}
		for i := first; i < last; i++ {
			line := low[starts[i]-starts[first] : starts[i+1]-starts[first]]
			if bytes.Contains(line[max(bytes.Index(line, []byte(`"from":`)), 0):], needle) {
				found = append(found, uint32(i+1))
			}
		}
		first = last
	}
	return found
}

func (t *trace) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil {
		t.file.Close() // opened only for reading
	}
}
