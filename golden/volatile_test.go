package golden

import (
	"regexp"
	"strings"
	"testing"
)

// What is volatile is a regular expression, written out.
func TestVolatileKeys(t *testing.T) {
	want := regexp.MustCompile(`^(?:.+At|.+_at|.+(?:_at_ms|AtMs)|(?i:.*(?:timestamp|duration|elapsed|` +
		`latency)(?:_?ms|_?secs?|_?seconds)?|pid|process_?id|pgid))$`)
	parts := []string{"", "a", "At", "_at", "at", "_", "Ms", "ms", "_ms", "s", "sec", "secs", "Seconds", "_seconds",
		"timestamp",
		"Timestamp", "duration", "elapsed", "latency", "pid", "PID", "process", "_id", "Id", "pgid", "created"}
	for _, a := range parts {
		for _, b := range parts {
			for _, c := range parts {
				if key := strings.Join([]string{a, b, c}, ""); volatile(key) != want.MatchString(key) {
					t.Fatalf("%q: %t", key, volatile(key))
				}
			}
		}
	}
}
