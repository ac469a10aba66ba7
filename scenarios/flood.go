package scenarios

import (
	"fmt"
	"sync/atomic"

	"github.com/acp-test/acp-test/transcript"
)

// Limits on an agent's output in one scenario. A scripted conversation needs far less, and the run must judge, show
// and store all output.
const (
	mostEntries = 100_000
	mostBytes   = 256 << 20
	// longestLine is the maximum size in bytes of a line that is read as a frame.
	longestLine = 32 << 20
)

// flood counts the entries and bytes that an agent adds to the log: its frames and its requests to the model, to
// other machines, to the network and to terminals. The log's lock protects it.
type flood struct {
	entries int
	bytes   int64
	why     atomic.Pointer[string] // why the agent was killed; nil if it was not
}

// measure counts an entry, and kills the agent if it exceeds a limit.
func (r *run) measure(e transcript.Entry) {
	switch e.Source {
	case transcript.Agent, transcript.Model, transcript.Terminal, transcript.Process, transcript.Network:
	default:
		return
	}
	f := &r.flood
	f.entries++
	f.bytes += int64(len(e.Raw))
	if e.Source == transcript.Agent && !r.protocol().Served { // in a stream, Size is only a claim of the frame
		f.bytes += int64(max(e.Size-len(e.Raw), 0))
	}
	var why string
	switch {
	case f.entries > mostEntries:
		why = fmt.Sprintf("it caused more than %d log entries in one scenario", mostEntries)
	case f.bytes > mostBytes:
		why = fmt.Sprintf("it wrote more than %d MiB in one scenario", mostBytes>>20)
	}
	if why == "" || !f.why.CompareAndSwap(nil, &why) {
		return
	}
	go r.change(func(s *state) { // in the background, because the log is locked here
		s.killed = true
		if s.agent != nil {
			s.agent.Cut()
		}
	})
}
