package transcript

import "sync"

// beside passes entries in order to a function that runs in another goroutine.
// A queue holds the entries that the function has not got yet. While the queue
// is full, Append waits.
type beside struct {
	see func(Entry)

	mu    sync.Mutex
	moved sync.Cond // signals each change of the fields below
	queue []Entry
	bytes int  // approximate size of the queue
	over  bool // no more entries will come
	ended bool
}

const fullQueue = 4 << 20 // bytes

func showBeside(see func(Entry)) *beside {
	b := &beside{see: see}
	b.moved.L = &b.mu
	go b.run()
	return b
}

func (b *beside) run() {
	var l lens
	var spare []Entry
	for {
		b.mu.Lock()
		for len(b.queue) == 0 && !b.over {
			b.moved.Wait()
		}
		entries := b.queue
		b.queue, b.bytes = spare[:0], 0
		b.ended = len(entries) == 0
		b.moved.Broadcast()
		b.mu.Unlock()
		if len(entries) == 0 {
			return
		}
		for i := range entries {
			l.show(&entries[i])
			b.see(entries[i])
		}
		clear(entries) // frees the entries, which may be large
		spare = entries
	}
}

// add adds an entry to the queue. The entry must not have a lens.
func (b *beside) add(e Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.bytes > fullQueue && !b.over {
		b.moved.Wait()
	}
	if b.over {
		return
	}
	b.queue = append(b.queue, e)
	b.bytes += len(e.Raw) + overhead
	if len(b.queue) == 1 {
		b.moved.Broadcast()
	}
}

// settle waits until the function has got all entries in the queue. It makes
// add ignore later entries.
func (b *beside) settle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.moved.Broadcast()
	for !b.ended {
		b.moved.Wait()
	}
}

// ObserveBeside is like Observe, but f runs in another goroutine while entries
// are appended. So f may be slow, and each parse of an entry is separate. If f
// is megabytes behind, Append waits for it. settle waits until f has got all
// entries that were appended before; f gets no later ones. Close calls settle
// too.
func (t *Transcript) ObserveBeside(f func(Entry)) (settle func()) {
	b := showBeside(f)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past(1, func(e Entry) bool {
		e.lens = nil
		b.add(e)
		return true
	})
	t.besides = append(t.besides, b)
	return b.settle
}
