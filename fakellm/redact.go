package fakellm

import (
	"net/http"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/secret"
)

// remember notes the secrets a request carries, to find them in texts.
func (r *Recorder) remember(hr *http.Request) {
	var found []string
	for name, values := range hr.Header {
		if !confidential(name) {
			continue
		}
		for _, v := range values {
			found = append(found, v)
			if _, key, ok := strings.Cut(v, " "); ok {
				found = append(found, key)
			}
		}
	}
	for _, c := range hr.Cookies() {
		found = append(found, c.Value)
	}
	found = append(found, hr.URL.Query().Get("key"))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range found {
		// Shorter ones are no secrets, and would blot out common words.
		if len(s) >= 8 && !slices.Contains(r.secrets, s) {
			r.secrets = append(r.secrets, s)
		}
	}
	// A secret that holds another one must go first.
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
}

// known finds the secrets that requests carried so far.
func (r *Recorder) known() *secret.Finder {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := &secret.Finder{}
	for _, k := range r.secrets {
		known.Add(k)
	}
	return known
}

func (r *Recorder) redact(s string) string { return r.known().Text(s) }

// redactChunks redacts a text that was cut into pieces: a secret may lie
// across them, and then they become one.
func (r *Recorder) redactChunks(chunks []string) []string {
	whole := strings.Join(chunks, "")
	if clean := r.redact(whole); clean != whole {
		return []string{clean}
	}
	return chunks
}
