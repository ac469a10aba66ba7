package transcript

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Save writes the whole transcript in its file form, with the file's redactions.
func (t *Transcript) Save(w io.Writer) error {
	buf := appendHeader(nil, t.header)
	for e := range t.Between(1, t.Len()) {
		buf = appendEntry(buf, t.store.redacted(e))
		if len(buf) > 256<<10 {
			if _, err := w.Write(buf); err != nil {
				return fmt.Errorf("saving the transcript: %w", err)
			}
			buf = reuse(buf)
		}
	}
	if _, err := w.Write(buf); err != nil {
		return fmt.Errorf("saving the transcript: %w", err)
	}
	return nil
}

// FormatError says which line of a transcript file is wrong.
type FormatError struct {
	Line int // from 1
	Err  error
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("line %d of the transcript: %v", e.Line, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

var errNoHeader = errors.New(`not a transcript: the first line should be a header such as {"acp-test":1,…}`)

// Load reads the file form. It leaves out an incomplete last line, which Torn
// reports; any other bad line is a *FormatError. An entry's Seq is its place in
// the file; if lines were removed from the file, Ref is adjusted. c is as in
// Options: it is for entries appended later, and for Message.
func Load(r io.Reader, c Classifier) (*Transcript, error) { return load(r, c, nil, nil) }

// Salvage is like Load, but leaves out lines that are not entries; Skipped
// returns them. each, if not nil, gets the entries as Shown yields them. It runs
// in another goroutine during the reading, and has ended when Salvage returns. So
// the caller need not decode the entries again.
func Salvage(r io.Reader, c Classifier, each func(Entry)) (*Transcript, error) {
	var skipped []FormatError
	var show func(Entry)
	if each != nil {
		b := showBeside(each)
		defer b.settle()
		show = b.add
	}
	t, err := load(r, c, func(bad FormatError) { skipped = append(skipped, bad) }, show)
	if t != nil {
		t.skipped = skipped
	}
	return t, err
}

func load(r io.Reader, c Classifier, skip func(FormatError), each func(Entry)) (*Transcript, error) {
	var t *Transcript
	err := scan(r, c, func(h Header) (err error) {
		if t, err = New(h, Options{Classifier: c}); err == nil {
			t.header = h // New would set a start time
		}
		return err
	}, func(e Entry) {
		if e = t.restore(e); each != nil {
			each(e)
		}
	}, skip)
	if errors.Is(err, errTorn) {
		t.torn, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	t.start = t.start.Add(-t.last) // appended entries continue from there
	return t, nil
}

// Scan calls do for each entry that Load would load, and keeps none of them. It
// leaves out an incomplete last line.
func Scan(r io.Reader, c Classifier, do func(Entry)) error {
	err := scan(r, c, func(Header) error { return nil }, do, nil)
	if errors.Is(err, errTorn) {
		return nil
	}
	return err
}

// errTorn is the error of a file that ends in the middle of a line.
var errTorn = errors.New("the file ends in the middle of a line")

// scan reads a file. It calls skip for lines that are not entries; with a nil
// skip it returns the first as an error.
func scan(r io.Reader, c Classifier, head func(Header) error, do func(Entry), skip func(FormatError)) error {
	in := bufio.NewReaderSize(r, 256<<10)
	line, err := in.ReadBytes('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("reading the transcript: %w", err)
	}
	h, bad := decodeHeader(line)
	if bad != nil {
		return &FormatError{1, bad}
	}
	if err := head(h); err != nil {
		return err
	}
	d := NewDecoder(c)
	for n := 2; ; n++ {
		line, err = readLine(in, line[:0])
		if err != nil && err != io.EOF {
			return fmt.Errorf("reading the transcript: %w", err)
		}
		whole := err == nil
		if len(line) == 0 {
			return nil
		}
		e, bad := d.Next(bytes.TrimSuffix(line, []byte("\n")))
		switch {
		case bad != nil && whole && skip != nil:
			skip(FormatError{n, bad})
			continue
		case bad != nil && whole:
			return &FormatError{n, bad}
		case bad != nil:
			return errTorn
		}
		do(e)
	}
}

// readLine appends the next line, with its newline, to buf.
func readLine(in *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		piece, err := in.ReadSlice('\n')
		buf = append(buf, piece...)
		if err != bufio.ErrBufferFull {
			return buf, err
		}
	}
}

func decodeHeader(line []byte) (Header, error) {
	var h headerLine
	if json.Unmarshal(line, &h) != nil || h.Format < 1 {
		return Header{}, errNoHeader
	}
	if h.Format > Format {
		return Header{}, fmt.Errorf("format %d is newer than %d, the newest this program reads", h.Format, Format)
	}
	return Header(h), nil
}

// renumbered maps the Seqs in a file to places in the file, from the first Seq
// that differs.
type renumbered struct {
	before int // numbers up to this one are places
	places map[int]int
}

func (r *renumbered) at(number, place, ref int) (seq, newRef int) {
	number = cmp.Or(number, place) // 0 was written by hand
	if r.places == nil && number == place {
		r.before = number
		return place, ref
	}
	if r.places == nil {
		r.places = map[int]int{}
	}
	r.places[number] = place
	if ref > r.before {
		ref = r.places[ref] // 0, no reference, if that entry is not there
	}
	return place, ref
}

// restore adds an entry of a file, with its time, and returns it as added.
func (t *Transcript) restore(e Entry) Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, e.At)
	if t.completes != nil && e.Frame() { // the file may have been written with another Classifier
		if ref := t.completes(e, t.classes.Frame(e.Source, e.Raw, e.JSON(), nil)); e.Ref == 0 {
			e.Ref = ref
		}
	}
	t.note(e)
	t.store.add(e, e)
	return e
}

// Decoder reads the lines of a file one by one, for callers that need the place
// of each line: in a file that is still being written, or to read a part of it.
// The zero value is not ready: use NewDecoder.
type Decoder struct {
	d      decoder
	places renumbered
	place  int
}

// NewDecoder returns a decoder for the entries after a header. c is as in
// Options.
func NewDecoder(c Classifier) *Decoder {
	if c == nil {
		c = JSONRPC{}
	}
	return &Decoder{d: decoder{classes: c}}
}

// DecodeHeader reads the first line of a file.
func DecodeHeader(line []byte) (Header, error) { return decodeHeader(line) }

// Next decodes the next line, without its newline, as Load does. The entry's Seq
// is its place among those read. The error says why the line is not an entry;
// such a line gets no place.
func (d *Decoder) Next(line []byte) (Entry, error) {
	e, err := d.d.entry(line)
	if err != nil {
		return Entry{}, err
	}
	d.place++
	e.Seq, e.Ref = d.places.at(e.Seq, d.place, e.Ref)
	return e, nil
}

// Again decodes a line that Next has read before, as the entry with that Seq. Ref
// is as in the file.
func (d *Decoder) Again(seq int, line []byte) (Entry, error) {
	e, err := d.d.entry(line)
	e.Seq = seq
	return e, err
}
