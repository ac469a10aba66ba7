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

// Save writes the whole transcript in its file format, with the same redactions
// as in the file.
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

// FormatError is a mistake in one line of a transcript file.
type FormatError struct {
	Line int // number of the line, from 1
	Err  error
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("line %d of the transcript: %v", e.Line, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

var errNoHeader = errors.New(`not a transcript: the first line should be a header such as {"acp-test":1,…}`)

// Load reads a transcript file. It ignores an incomplete last line, which Torn
// reports. Any other invalid line is a *FormatError. An entry's Seq is its
// position in the file. If lines were removed from the file, Load adjusts Ref.
// c is as in Options; it is used for Message and for entries that are appended
// later.
func Load(r io.Reader, c Classifier) (*Transcript, error) { return load(r, c, nil, nil) }

// Salvage is like Load, but it skips lines that are not entries; Skipped
// returns these. each, if not nil, gets the entries in the same form as from
// Shown, so that the caller need not decode them again. It runs in another
// goroutine during the reading, and has finished when Salvage returns.
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
	t.start = t.start.Add(-t.last) // appended entries continue from the last time in the file
	return t, nil
}

// Scan calls do for each entry in a transcript file, without keeping the
// entries in memory. It ignores an incomplete last line.
func Scan(r io.Reader, c Classifier, do func(Entry)) error {
	err := scan(r, c, func(Header) error { return nil }, do, nil)
	if errors.Is(err, errTorn) {
		return nil
	}
	return err
}

// errTorn means that a file ends in the middle of a line.
var errTorn = errors.New("the file ends in the middle of a line")

// scan reads a transcript file. It calls skip for each line that is not an
// entry. If skip is nil, it returns the first such line as an error.
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

// renumbered maps the Seqs in a file to positions in the file. It starts at the
// first Seq that differs from its position.
type renumbered struct {
	before int // Seqs up to this one equal their positions
	places map[int]int
}

func (r *renumbered) at(number, place, ref int) (seq, newRef int) {
	number = cmp.Or(number, place) // 0 in a file that was written by hand
	if r.places == nil && number == place {
		r.before = number
		return place, ref
	}
	if r.places == nil {
		r.places = map[int]int{}
	}
	r.places[number] = place
	if ref > r.before {
		ref = r.places[ref] // 0 (no reference) if that entry is missing
	}
	return place, ref
}

// restore adds an entry from a file, keeping its time. It returns the added
// entry.
func (t *Transcript) restore(e Entry) Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, e.At)
	if t.completes != nil && e.Frame() { // another Classifier may have written the file
		if ref := t.completes(e, t.classes.Frame(e.Source, e.Raw, e.JSON(), nil)); e.Ref == 0 {
			e.Ref = ref
		}
	}
	t.note(e)
	t.store.add(e, e)
	return e
}

// Decoder decodes the lines of a transcript file one by one. It is for callers
// that need the position of each line, for example to follow a file that is
// still being written, or to read a part of it. Use NewDecoder; the zero value
// does not work.
type Decoder struct {
	d      decoder
	places renumbered
	place  int
}

// NewDecoder returns a decoder for the lines after the header. c is as in
// Options.
func NewDecoder(c Classifier) *Decoder {
	if c == nil {
		c = JSONRPC{}
	}
	return &Decoder{d: decoder{classes: c}}
}

// DecodeHeader decodes the first line of a transcript file.
func DecodeHeader(line []byte) (Header, error) { return decodeHeader(line) }

// Next decodes the next line, without its newline, in the same way as Load. The
// entry's Seq is its position among the entries decoded so far. Next returns an
// error if the line is not an entry; such a line does not count.
func (d *Decoder) Next(line []byte) (Entry, error) {
	e, err := d.d.entry(line)
	if err != nil {
		return Entry{}, err
	}
	d.place++
	e.Seq, e.Ref = d.places.at(e.Seq, d.place, e.Ref)
	return e, nil
}

// Again decodes a line that Next has decoded before. seq is the Seq that the
// entry got. Ref is unchanged from the file.
func (d *Decoder) Again(seq int, line []byte) (Entry, error) {
	e, err := d.d.entry(line)
	e.Seq = seq
	return e, err
}
