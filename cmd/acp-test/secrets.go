package main

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
)

// secrets knows the values of the variables of this environment, and of more ("K=V"),
// whose names say that they are secret.
func (h *host) secrets(more ...string) *secret.Finder {
	return secret.New(h.secretive(more)...)
}

// secretive is this environment and more variables ("K=V"), without those whose value is a word
// of ours, such as the name of a scenario: without it no report could be read.
func (h *host) secretive(more []string) []string {
	names, _ := fs.Glob(acpV1().Suites, "*/*.txtar") // the pattern is valid
	ours := map[string]bool{}
	for _, name := range names {
		name = strings.TrimSuffix(name, ".txtar")
		suite, scenario := path.Split(name)
		ours[name], ours[path.Clean(suite)], ours[scenario] = true, true, true
	}
	return slices.DeleteFunc(slices.Concat(h.env, more), func(kv string) bool {
		_, value, _ := strings.Cut(kv, "=")
		return ours[value]
	})
}

// redactor makes what takes secrets out of the entries of a transcript.
func (h *host) redactor(of protocol, more ...string) func(transcript.Entry) transcript.Entry {
	return replay.Redaction{Protocol: of.recordings, Env: h.secretive(more)}.Func()
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
