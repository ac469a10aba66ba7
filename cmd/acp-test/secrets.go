package main

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
)

// secrets knows the values of the variables of this environment, and of more ("K=V"),
// whose names say that they are secret.
func (h *host) secrets(more ...string) *secret.Finder {
	return secret.New(slices.Concat(h.env, more)...)
}

// redactor makes what takes secrets out of the entries of a transcript.
func (h *host) redactor(of protocol, more ...string) func(transcript.Entry) transcript.Entry {
	return replay.Redaction{Protocol: of.recordings, Env: slices.Concat(h.env, more)}.Func()
}

// spoken is a command line to be shown, and to be typed again: the value of a secret
// variable is not in it, but the name, as --pass-env has it, nor that of a flag or
// parameter whose name says that it is secret.
func spoken(words []string) []string {
	out := slices.Clone(words)
	for i, w := range out {
		kv, joined := strings.CutPrefix(w, "--env=")
		if !joined && (i == 0 || words[i-1] != "--env") {
			continue
		}
		if !joined {
			kv = w
		}
		name, value, ok := strings.Cut(kv, "=")
		switch {
		case !ok || !secret.Name(name) || value == "$KEY": // that is a dummy
		case joined:
			out[i] = "--pass-env=" + name
		default:
			out[i-1], out[i] = "--pass-env", name
		}
	}
	return out
}
