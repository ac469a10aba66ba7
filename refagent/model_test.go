package refagent

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestRetryWaitIsWhatTheServerAsksForButNotForEver(t *testing.T) {
	for _, c := range []struct {
		header, value string
		attempt       int
		want          time.Duration
	}{
		{"", "", 0, 500 * time.Millisecond},
		{"", "", 1, time.Second},
		{"", "", 20, 5 * time.Second},
		{"Retry-After-Ms", "20", 0, 20 * time.Millisecond},
		{"Retry-After-Ms", "0", 3, 0},
		{"Retry-After-Ms", "60000", 0, 5 * time.Second},
		{"Retry-After-Ms", "-1", 0, 500 * time.Millisecond},
		{"Retry-After-Ms", "soon", 0, 500 * time.Millisecond},
		{"Retry-After", "2", 0, 2 * time.Second},
		{"Retry-After", "3600", 0, 5 * time.Second},
	} {
		r := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}}
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		g := NewWithT(t)
		g.Expect(retryWait(500*time.Millisecond, maxRetryWait, c.attempt, r)).
			To(Equal(c.want), "%s: %s, attempt %d", c.header, c.value, c.attempt)
	}
	NewWithT(t).Expect(retryWait(time.Second, maxRetryWait, 0, nil)).To(Equal(time.Second), "no response at all")
}
