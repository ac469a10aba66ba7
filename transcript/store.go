package transcript

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"os"
	"slices"
	"sort"
	"sync"
)

// store holds the entries: the newest in memory, older ones only on disk. If
// the caller gave no file, the store creates a temporary one when memory is
// full. The transcript's lock must be held for all methods except close.
type store struct {
	mu     *sync.Mutex // the transcript's lock
	limit  int
	redact func(Entry) Entry

	count  int     // number of all entries
	recent []block // blocks in memory, oldest first
	bytes  int     // approximate memory of the recent blocks
	old    []span  // blocks that are only on disk, oldest first
	cache  block   // the block that was read from disk last
	at     int     // index of this block in old
	reads  decoder // decodes entries that are read from disk
	ahead  *ahead  // the block after cache, which is read in advance; nil if entries are not read in order

	disk *disk // nil until needed
	done bool  // closed: no more entries go to disk
	err  error // the first error of writing or reading the disk
}

// block is a range of entries that are moved to disk and read from it together.
type block struct {
	first   int // Seq of entries[0]
	entries []Entry
	bytes   int
	off     int64 // offset of its first line in the file, if there is one
}

// span is the place of a block in the file.
type span struct {
	first, n int
	off, end int64
}

const (
	blockEntries = 256     // maximum number of entries in a block
	blockBytes   = 1 << 20 // maximum size of a block, apart from its last entry
	overhead     = 256     // approximate memory for an entry in addition to its bytes
)

func (s *store) open(mu *sync.Mutex, h Header, o Options) error {
	s.mu, s.redact, s.limit, s.reads.classes = mu, o.Redact, cmp.Or(max(o.Memory, 0), 64<<20), o.Classifier
	f := o.File
	if o.Path != "" {
		file, err := os.Create(o.Path)
		if err != nil {
			return fmt.Errorf("making the transcript's file: %w", err)
		}
		f = file
	}
	if f == nil {
		return nil
	}
	s.disk = newDisk(f, h, o, mu)
	if o.Failed != nil {
		return nil // Failed has already been called
	}
	return s.disk.err()
}

func (s *store) len() int { return s.count }

// stretch returns the entries from seq on, up to the end of their block. It
// returns nil if there is no entry seq. The slice is never modified later.
func (s *store) stretch(seq int) []Entry {
	if seq < 1 || seq > s.count {
		return nil
	}
	if first := s.recent[0].first; seq >= first {
		i := sort.Search(len(s.recent), func(i int) bool { return s.recent[i].first > seq }) - 1
		return s.recent[i].from(seq)
	}
	if seq < s.cache.first || seq >= s.cache.first+len(s.cache.entries) {
		s.bring(sort.Search(len(s.old), func(i int) bool { return s.old[i].first > seq }) - 1)
	}
	return s.cache.from(seq)
}

func (b block) from(seq int) []Entry {
	return slices.Clip(b.entries[seq-b.first:])
}

// add stores an entry. shown is the same entry with a lens.
func (s *store) add(e, shown Entry) {
	s.count++
	size := len(e.Raw) + overhead
	n := len(s.recent)
	if n == 0 || len(s.recent[n-1].entries) == blockEntries || s.recent[n-1].bytes+size > min(blockBytes, s.limit/4) {
		b := block{first: s.count}
		if n > 0 && len(s.recent[n-1].entries) == blockEntries {
			b.entries = make([]Entry, 0, blockEntries)
		}
		if s.disk != nil {
			b.off = s.disk.end
		}
		s.recent = append(s.recent, b)
		n++
	}
	b := &s.recent[n-1]
	b.entries = append(b.entries, e)
	b.bytes += size
	s.bytes += size
	if s.writes() && !s.disk.temporary {
		s.disk.write(s.redacted(shown))
		s.fail(s.disk.err())
	}
	if s.bytes > s.limit {
		s.spill()
	}
}

// gather makes the disk keep lines until handOver, which writes them all at
// once.
func (s *store) gather() {
	if s.writes() {
		s.disk.gathers = true
	}
}

func (s *store) handOver() {
	if s.disk == nil || !s.disk.gathers {
		return
	}
	s.disk.gathers = false
	if s.disk.through {
		s.disk.flush()
		s.fail(s.disk.err())
	}
}

// writes reports whether there is a file and it still accepts entries.
func (s *store) writes() bool { return s.disk != nil && !s.done && s.err == nil }

func (s *store) redacted(e Entry) Entry {
	if s.redact == nil {
		return e
	}
	r := s.redact(e)
	r.lens = nil // the lens still shows the unredacted entry
	if len(r.Raw) != len(e.Raw) || len(r.Raw) > 0 && &r.Raw[0] != &e.Raw[0] {
		r.sound = isJSON(r)
	}
	return r
}

// spill removes the oldest blocks from memory until half of the memory is free.
// These blocks are on disk. It keeps the block that is still growing. If the
// disk has failed, it keeps everything, because memory is the only place left.
func (s *store) spill() {
	if s.done || s.err != nil || len(s.recent) < 2 {
		return
	}
	if s.disk == nil {
		d, err := temporaryDisk(s.mu)
		if err != nil {
			s.fail(fmt.Errorf("moving old entries of the transcript to disk: %w", err))
			return
		}
		s.disk = d
	}
	var spans []span
	drop, freed := 0, 0
	for drop < len(s.recent)-1 && s.bytes-freed > s.limit/2 {
		b := s.recent[drop]
		if s.disk.temporary {
			b.off = s.disk.end
			for _, e := range b.entries {
				s.disk.write(s.redacted(e))
			}
		}
		end := s.disk.end
		if !s.disk.temporary {
			end = s.recent[drop+1].off
		}
		spans = append(spans, span{b.first, len(b.entries), b.off, end})
		freed += b.bytes
		drop++
	}
	s.disk.flush()
	if s.disk.err() != nil {
		s.fail(s.disk.err())
		return
	}
	s.old = append(s.old, spans...)
	s.recent = append(s.recent[:0:0], s.recent[drop:]...)
	s.bytes -= freed
}

// bring loads block i of old into cache. If blocks are read in order, it also
// starts to decode the next one.
func (s *store) bring(i int) {
	onward := i == s.at+1
	next := &ahead{i: i + 1, reads: decoder{classes: s.reads.classes}, done: make(chan struct{})}
	var err error
	if a := s.ahead; a != nil && a.i == i {
		<-a.done
		s.cache, err = a.block, a.err
		next.reads = a.reads
	} else {
		s.cache, err = s.read(s.old[i], &s.reads)
	}
	s.at, s.ahead = i, nil
	s.fail(err)
	if onward && next.i < len(s.old) {
		s.ahead = next
		where := s.old[next.i]
		go func() {
			defer close(next.done)
			next.block, next.err = s.read(where, &next.reads)
		}()
	}
}

// ahead is a block that is being read in advance.
type ahead struct {
	i     int // index in old
	reads decoder
	done  chan struct{}
	block block
	err   error
}

// read reads a block from disk, without the lock. It replaces each entry that
// cannot be read by a note with the error.
func (s *store) read(p span, d *decoder) (b block, failed error) {
	b = block{first: p.first, entries: make([]Entry, p.n)}
	text, err := s.disk.read(p.off, p.end)
	for i := range b.entries {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if err == nil {
			b.entries[i], err = d.again(line)
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("reading entry %d of the transcript back: %w", p.first+i, err)
		}
		if err != nil {
			b.entries[i] = Entry{Source: Note, Kind: Noted, Problem: failed.Error()}
		}
		b.entries[i].Seq = p.first + i
	}
	return b, failed
}

func (s *store) fail(err error) {
	if s.err == nil && err != nil {
		s.err = err
	}
}

// lastExit returns the entry of the last exit of an agent, or the zero Entry.
func (s *store) lastExit() Entry {
	for seq := s.count; seq > 0; seq-- {
		if e := s.stretch(seq)[0]; e.Source == Process && e.Kind == Exited {
			return e
		}
	}
	return Entry{}
}

// close writes the remaining entries. The file stays open only if it has
// entries that are no longer in memory.
func (s *store) close() error {
	s.mu.Lock()
	d := s.disk
	first := !s.done
	s.done = true
	s.mu.Unlock()
	if d != nil && first {
		d.stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d != nil && first {
		d.flush()
		s.fail(d.err())
		if len(s.old) == 0 {
			s.fail(d.close())
		}
	}
	return s.err
}

// note updates agents, links and places for an entry that will be stored.
func (t *Transcript) note(e Entry) {
	t.agents.note(e)
	t.links.note(e)
	if e.Source == Note && e.Kind == Places {
		t.places = append(t.places, e.Seq)
	}
}

// Places yields the entries of kind Places. It does not read the other entries.
func (t *Transcript) Places() iter.Seq[Entry] {
	t.mu.Lock()
	places := t.places
	t.mu.Unlock()
	return func(yield func(Entry) bool) {
		for _, seq := range places {
			if !yield(t.At(seq)) {
				return
			}
		}
	}
}

// agents tracks which agents are running, because a wait ends when the last
// agent exits.
type agents struct {
	running map[int]struct{} // set of the connections of running agents
	exited  bool
}

func (a *agents) note(e Entry) {
	if e.Source != Process {
		return
	}
	switch e.Kind {
	case Started:
		if a.running == nil {
			a.running = map[int]struct{}{}
		}
		a.running[e.Conn] = struct{}{}
	case Exited:
		delete(a.running, e.Conn)
		a.exited = true
	}
}

// gone reports whether at least one agent has exited and none is running.
func (a *agents) gone() bool { return a.exited && len(a.running) == 0 }
