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

// secrets returns a finder for the values of secret variables in this environment and in more ("K=V"). A variable's
// name decides whether it is secret.
func (h *host) secrets(more ...string) *secret.Finder {
	return secret.New(h.secretive(more)...)
}

// secretive returns the variables of this environment and of more ("K=V"). It omits variables whose value is also the
// name of a scenario or suite, because hiding such a word would make reports unreadable.
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

// redactor returns a function that removes secrets from the entries of a transcript.
func (h *host) redactor(of protocol, more ...string) func(transcript.Entry) transcript.Entry {
	return replay.Redaction{Protocol: of.recordings, Known: h.secrets(more...)}.Func()
}

// spoken returns a command line that is safe to print and can be typed again. It replaces --env with a secret
// variable by --pass-env with only the variable's name.
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
		case !ok || !secret.Name(name) || value == "$KEY": // $KEY is a dummy
		case joined:
			out[i] = "--pass-env=" + name
		default:
			out[i-1], out[i] = "--pass-env", name
		}
	}
	return out
}
