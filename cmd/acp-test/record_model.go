package main

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/transcript"
)

// notAsked is the code of the note in a recording whose agent asked no model through it.
const notAsked = "model-not-asked"

// tell says a thing to the user of the editor, and in the recording.
func (h *host) tell(log *transcript.Transcript, code, text string) {
	fmt.Fprintf(h.err, "acp-test: %s\n", text)
	log.Event(0, transcript.Note, transcript.Noted, "", map[string]any{"code": code, "text": text})
}

// tellVendors says which requests go to a vendor, since the environment names no other
// address.
func (h *host) tellVendors(log *transcript.Transcript) {
	var unset []string
	for _, p := range providers() {
		if set, _ := h.getenv(p.variable); set == "" {
			unset = append(unset, fmt.Sprintf("%s is not set: %s", p.variable, p.vendor))
		}
	}
	if len(unset) > 0 {
		h.tell(log, "model-vendor", "requests of the model go to the vendor, unless --llm=URL says where ("+
			strings.Join(slices.Compact(unset), "; ")+")")
	}
}

// watchModel watches whether the model is asked. The function that it returns says at the
// end that it never was, if the editor prompted.
func (h *host) watchModel(log *transcript.Transcript) (end func()) {
	var prompted, asked atomic.Bool
	p := recordings.V1()
	log.Observe(func(e transcript.Entry) {
		switch {
		case e.Kind == transcript.ModelRequest:
			asked.Store(true)
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			if _, ok := p.Prompt(e); ok {
				prompted.Store(true)
			}
		}
	})
	return func() {
		if !prompted.Load() || asked.Load() {
			return
		}
		var names []string
		for _, p := range providers() {
			names = append(names, p.variable)
		}
		h.tell(log, notAsked, "the agent never asked a model through this recording, so what its model said is not in it; "+
			"an agent that has the model's address in a file of its own must have that of "+
			strings.Join(slices.Compact(names), ", ")+" there, which record sets")
	}
}

// neverAsked reports whether a recording says that its agent asked no model through it.
func neverAsked(t *transcript.Transcript) bool {
	for e := range t.All() {
		if e.Kind == transcript.Noted && e.JSON().Get("code").Is(notAsked) {
			return true
		}
	}
	return false
}
