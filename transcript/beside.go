package transcript

import "sync"

// beside passes entries in order to a function in another goroutine. A queue
// holds the entries that the function has not read yet. An Append to a full queue
// waits.
type beside struct {
	see func(Entry)

	mu    sync.Mutex
	moved sync.Cond // on each change of the fields below
	queue []Entry
	bytes int  // of the queue, roughly
	over  bool // nothing more comes
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
		clear(entries) // the entries may be large
		spare = entries
	}
}

// add hands over an entry, which must not have a lens.
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

// settle waits until the function has seen all entries. It ignores entries added
// from now on.
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
// are appended, so it may be slow; it parses each entry anew. If f is megabytes
// behind, Append waits for it. The returned settle waits until f has seen all
// entries appended before; f does not get later ones. Close does the same.
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
