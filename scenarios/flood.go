package scenarios

import (
	"fmt"
	"sync/atomic"

	"github.com/acp-test/acp-test/transcript"
)

// What an agent may say in one scenario. No agent has so much to say in a scripted
// conversation, and what must be judged, shown and kept has to end somewhere.
const (
	mostEntries = 100_000
	mostBytes   = 256 << 20
	// longestLine is the longest line that is read as a frame, in bytes.
	longestLine = 32 << 20
)

// flood counts what an agent makes the log hold: its frames, what it asks of the
// model, of other machines, of the network and of terminals. The lock of the log guards it.
type flood struct {
	entries int
	bytes   int64
	why     atomic.Pointer[string] // it was too much
}

// measure observes an entry, and kills an agent that floods the log.
func (r *run) measure(e transcript.Entry) {
	switch e.Source {
	case transcript.Agent, transcript.Model, transcript.Terminal, transcript.Process, transcript.Network:
	default:
		return
	}
	f := &r.flood
	f.entries++
	f.bytes += int64(len(e.Raw))
	if e.Source == transcript.Agent && !r.protocol().Served { // of a stream the size is what a frame claims
		f.bytes += int64(max(e.Size-len(e.Raw), 0))
	}
	var why string
	switch {
	case f.entries > mostEntries:
		why = fmt.Sprintf("it made more than %d entries of the log in one scenario", mostEntries)
	case f.bytes > mostBytes:
		why = fmt.Sprintf("it wrote more than %d MiB in one scenario", mostBytes>>20)
	}
	if why == "" || !f.why.CompareAndSwap(nil, &why) {
		return
	}
	go r.change(func(s *state) { // the log is locked here
		s.killed = true
		if s.agent != nil {
			s.agent.Cut()
		}
	})
}
