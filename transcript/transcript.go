package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/acp-test/acp-test/wire"
)

// Header describes the run to which a transcript belongs. It is the first line
// of a transcript file.
type Header struct {
	// Format is the version of the file format; 0 means the newest.
	Format int
	// Tool is the name and version of the program that made the transcript.
	Tool string
	// Agent and Scenario are the names of the agent and of the scenario. Both may
	// be empty in a recording.
	Agent, Scenario string
	// Protocol is the protocol version that the editor offered, as text ("1").
	Protocol string
	Seed     int64
	// Started is when the run started. If it is zero, New sets it.
	Started time.Time
}

// Options are the settings of a transcript. The zero value keeps up to 64 MiB
// of entries in memory and moves older ones to a temporary file.
type Options struct {
	// Path is the path of a file to write while the transcript grows. An existing
	// file is replaced. If Path is "", no file is written.
	Path string
	// File replaces the file at Path. It is closed together with the transcript.
	File File
	// Through writes each entry to the file before Append returns, so that even a
	// crash of this process loses no entry. By default a goroutine hands entries
	// to the kernel a moment later.
	Through bool
	// Memory is the maximum size in bytes of the entries in memory; 0 means 64
	// MiB. Older entries are read from disk when they are needed.
	Memory int
	// Redact changes each entry before it is written to disk or by Save. Redacting
	// a redacted entry must not change it. Observers, and entries that are still
	// in memory, have the original. If Redact is nil, entries are written
	// unchanged.
	Redact func(Entry) Entry
	// Failed is called immediately with the first error of the file. Nothing is
	// written after that. Failed must not call the transcript.
	Failed func(error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Classifier splits frames into their parts; nil means JSONRPC.
	Classifier Classifier
}

// Transcript is the log of one run. All methods may be called from any goroutine.
// A later entry has a higher Seq.
type Transcript struct {
	header  Header
	now     func() time.Time
	start   time.Time
	lenses  sync.Pool // pool of *lens
	classes Classifier
	// completes is called with mu held. If it is nil, only responses complete
	// requests.
	completes func(Entry, wire.Frame) int

	mu        sync.Mutex
	last      time.Duration // At of the last entry
	store     store
	links     links
	observers []func(Entry)
	besides   []*beside
	waiters   map[*waiter]struct{}
	agents    agents
	places    []int // Seqs of the entries of kind Places
	torn      bool
	skipped   []FormatError
	imported  string // how a file in another format was read; "" for a transcript file
}

// New returns an empty transcript. It returns an error if the file at
// Options.Path could not be created. A transcript with a Path must be closed.
func New(h Header, o Options) (*Transcript, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Classifier == nil {
		o.Classifier = JSONRPC{}
	}
	h.Format = cmp.Or(h.Format, Format)
	if h.Started.IsZero() {
		h.Started = o.Now()
	}
	t := &Transcript{header: h, now: o.Now, start: o.Now(), classes: o.Classifier, waiters: map[*waiter]struct{}{}}
	t.lenses.New = func() any { return new(lens) }
	if c, ok := o.Classifier.(Completer); ok {
		t.completes = c.Completes()
	}
	if err := t.store.open(&t.mu, h, o); err != nil {
		return nil, err
	}
	return t, nil
}

// Header returns the description of the run.
func (t *Transcript) Header() Header { return t.header }

// AppendFrame appends one line that was sent over the wire on connection conn.
// from is Editor or Agent. raw is the line without its newline; the transcript
// keeps it. If raw was cut, size is the length on the wire, else 0. AppendFrame
// parses and classifies the line, and finds the request of a response.
func (t *Transcript) AppendFrame(conn int, from Source, raw []byte, size int) Entry {
	return t.appendFrame(conn, from, 0, raw, size)
}

// AppendReceived is like AppendFrame, for a line that the agent sent over a
// stream. stream is the value of Entry.Stream.
func (t *Transcript) AppendReceived(conn, stream int, raw []byte, size int) Entry {
	return t.appendFrame(conn, Agent, stream, raw, size)
}

func (t *Transcript) appendFrame(conn int, from Source, stream int, raw []byte, size int) Entry {
	e, f := t.classify(conn, from, raw, size)
	e.Stream = stream
	t.mu.Lock()
	defer t.mu.Unlock()
	t.link(&e, f)
	return t.append(e, true)
}

// link sets the fields of an entry that come from a frame, including the
// request that the frame completes.
func (t *Transcript) link(e *Entry, f wire.Frame) {
	t.links.fill(e, f, t.classes)
	if t.completes == nil {
		return
	}
	seen := *e
	seen.Seq = t.store.len() + 1
	if ref := t.completes(seen, f); ref > 0 && e.Ref == 0 {
		e.Ref = ref
	}
}

// AppendReply is like AppendFrame, for a line of the agent that answers the
// client's frame ref. The transport knows this. The line belongs to the session
// of that frame.
func (t *Transcript) AppendReply(conn, ref int, raw []byte, size int) Entry {
	e, f := t.classify(conn, Agent, raw, size)
	t.mu.Lock()
	defer t.mu.Unlock()
	e.ID, e.Method, e.Ref = f.ID, f.Method, ref
	if asked := t.store.stretch(ref); len(asked) > 0 {
		e.Session = asked[0].Session
	}
	return t.append(e, true)
}

// AppendFrames is like AppendFrame for several lines. No other entry comes
// between them, and they are handed to the kernel in one write.
func (t *Transcript) AppendFrames(conn int, from Source, lines iter.Seq[[]byte]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.store.gather()
	for raw := range lines {
		e, f := t.classify(conn, from, raw, 0)
		t.link(&e, f)
		t.append(e, true)
	}
	t.store.handOver()
}

// classify returns the entry for a line. Its lens has already parsed the line.
func (t *Transcript) classify(conn int, from Source, raw []byte, size int) (Entry, wire.Frame) {
	l := t.lenses.Get().(*lens)
	e := Entry{Conn: conn, Source: from, Kind: Malformed, Raw: raw, lens: l}
	if size > len(raw) {
		e.Size = size
		e.Problem = fmt.Sprintf("the line is %d bytes long, more than the limit; the first %d are kept", size, len(raw))
		l.frame = wire.Frame{}
		return e, l.frame
	}
	err := l.doc.Parse(raw)
	l.frame = t.classes.Frame(from, raw, l.doc.Root(), err)
	e.Problem = l.frame.Problem
	e.sound = err == nil
	switch l.frame.Kind {
	case wire.Request:
		e.Kind = Request
	case wire.Notification:
		e.Kind = Notification
	case wire.Response:
		e.Kind = Response
	}
	return e, l.frame
}

// Append appends an entry unchanged, except that the transcript assigns Seq and
// At. It never fails. If writing the file fails, Err returns the error and the
// entry stays in memory. An ID that is not JSON text is converted to a JSON
// string.
func (t *Transcript) Append(e Entry) Entry {
	e.sound = isJSON(e)
	if e.ID != "" {
		if _, err := wire.Parse([]byte(e.ID)); err != nil {
			e.ID = wire.ID(wire.AppendString(nil, string(e.ID)))
		}
	}
	return t.add(e)
}

// Event appends an entry that is not a frame. details is marshaled to a JSON
// object, which becomes Raw. If that fails, Raw contains the error instead.
func (t *Transcript) Event(conn int, s Source, k Kind, session string, details any) Entry {
	raw, err := json.Marshal(details)
	if err != nil {
		raw = wire.AppendString([]byte(`{"error":`), err.Error())
		raw = append(raw, '}')
	}
	return t.add(Entry{Conn: conn, Source: s, Kind: k, Session: session, Raw: raw, sound: s != Stderr})
}

// Events appends entries of one kind and returns the last one. No other entry
// comes between them. Each element of details becomes the Raw of one entry. It
// must be a JSON object, which is not checked, and must not be modified later.
func (t *Transcript) Events(conn int, s Source, k Kind, session string, details ...[]byte) (last Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, raw := range details {
		e := Entry{Conn: conn, Source: s, Kind: k, Session: session, Raw: raw, sound: true}
		e.lens = t.lenses.Get().(*lens)
		last = t.append(e, false)
	}
	return last
}

func (t *Transcript) add(e Entry) Entry {
	e.lens = t.lenses.Get().(*lens)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.append(e, false)
}

// append stores an entry and shows it to all observers and waiters. The entry
// must have its own lens. parsed means that the lens has already parsed and
// classified the entry.
func (t *Transcript) append(e Entry, parsed bool) Entry {
	e.Seq = t.store.len() + 1
	t.last = max(t.last, t.now().Sub(t.start).Truncate(time.Microsecond))
	e.At = t.last
	t.note(e)
	e.classes = t.classes
	l := e.lens
	stored := e
	stored.lens = nil
	watched := len(t.observers) > 0 || len(t.waiters) > 0
	if watched || t.store.redact != nil {
		l.show(&e)
		l.parsed, l.classified = parsed, parsed
	}
	t.store.add(stored, e)
	for _, b := range t.besides {
		b.add(stored)
	}
	if watched {
		t.tell(e)
	}
	l.shows.Store(0)
	t.lenses.Put(l)
	return stored
}

func (t *Transcript) tell(e Entry) {
	for _, f := range t.observers {
		f(e)
	}
	for w := range t.waiters {
		if w.see(e, t.agents.gone()) {
			delete(t.waiters, w)
		}
	}
}

// Len returns the number of entries, which is also the Seq of the last one.
func (t *Transcript) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.store.len()
}

// Format implements fmt.Formatter and prints only the length. Otherwise a
// failed assertion would print the fields while goroutines change them.
func (t *Transcript) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "transcript of %d entries", t.Len())
}

// At returns the entry with the given Seq, or the zero Entry if there is none.
func (t *Transcript) At(seq int) Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if stretch := t.store.stretch(seq); len(stretch) > 0 {
		return stretch[0]
	}
	return Entry{}
}

// All yields all entries in order, including those that are appended during the
// loop.
func (t *Transcript) All() iter.Seq[Entry] { return t.From(1) }

// From yields the entries with the given Seq or a greater one, including those
// that are appended during the loop. The lock is not held in the loop's body.
func (t *Transcript) From(seq int) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for next := max(seq, 1); ; {
			t.mu.Lock()
			stretch := t.store.stretch(next)
			t.mu.Unlock()
			if len(stretch) == 0 {
				return
			}
			for _, e := range stretch {
				if !yield(e) {
					return
				}
			}
			next += len(stretch)
		}
	}
}

// Between yields the entries with first <= Seq <= last.
func (t *Transcript) Between(first, last int) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for e := range t.From(first) {
			if e.Seq > last || !yield(e) {
				return
			}
		}
	}
}

// Shown is like All, but all readers of an entry share one parse, as for
// observers. The results of JSON and Message must not be kept beyond the entry.
func (t *Transcript) Shown() iter.Seq[Entry] { return t.shown(1, math.MaxInt) }

// shown is like Between, but all readers of an entry share one parse.
func (t *Transcript) shown(first, last int) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		var l lens
		for e := range t.Between(first, last) {
			l.show(&e)
			if !yield(e) {
				return
			}
		}
	}
}

// past calls f with the entries from first on, until f returns false. The caller
// holds the lock.
func (t *Transcript) past(first int, f func(Entry) bool) {
	var l lens
	for next := first; ; {
		stretch := t.store.stretch(next)
		if len(stretch) == 0 {
			return
		}
		for _, e := range stretch {
			l.show(&e)
			if !f(e) {
				return
			}
		}
		next += len(stretch)
	}
}

// Observe calls f once for every entry, in order. It starts with the entries
// that already exist. f is called with the transcript's lock held: it must be
// fast and must not call the transcript.
func (t *Transcript) Observe(f func(Entry)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past(1, func(e Entry) bool {
		f(e)
		return true
	})
	t.observers = append(t.observers, f)
}

// Err returns the first error of writing or reading the file, or nil.
func (t *Transcript) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.store.disk != nil {
		t.store.fail(t.store.disk.err())
	}
	return t.store.err
}

// InMemory reports whether all entries are in memory. Save then does not read
// the file.
func (t *Transcript) InMemory() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.store.old) == 0
}

// Torn reports whether the loaded file ended in the middle of a line, for example
// after a crash. That line is not an entry.
func (t *Transcript) Torn() bool { return t.torn }

// Skipped returns the lines of the loaded file that Salvage left out.
func (t *Transcript) Skipped() []FormatError { return t.skipped }

// Imported records that the transcript was read from a file in another format.
// as is a sentence that describes how.
func (t *Transcript) Imported(as string) { t.imported = as }

// ImportedAs returns the sentence that Imported recorded. It returns "" for a
// transcript file of this program.
func (t *Transcript) ImportedAs() string { return t.imported }

// Skip adds lines to the result of Skipped. Readers of other formats call it.
func (t *Transcript) Skip(lines ...FormatError) { t.skipped = append(t.skipped, lines...) }

// Close writes the pending entries to the file and closes the file. Entries can
// still be read and appended; entries that are appended later are only in
// memory.
func (t *Transcript) Close() error {
	t.mu.Lock()
	besides := t.besides
	t.mu.Unlock()
	for _, b := range besides {
		b.settle()
	}
	return t.store.close()
}
