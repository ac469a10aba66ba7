package netagent

import (
	"strconv"
	"testing"
	"time"
)

// An editor may have a message before the server notes that it went out. It can resume after that message, which does
// not come again.
func TestResumeAfterAMessageThatIsOnItsWay(t *testing.T) {
	c := newConnection(&Options{}, "c", "")
	b, _ := c.claim("", "", false)
	first := b.reader
	go c.Write([]byte("{\"jsonrpc\":\"2.0\",\"method\":\"_x\"}\n"))
	f, ok := b.next(make(chan struct{}), make(chan time.Time))
	if !ok {
		t.Fatal("the message does not come")
	}
	b, known := c.claim("", strconv.Itoa(f.seq), false)
	if b == nil || !known {
		t.Fatalf("a resume after message %d is refused", f.seq)
	}
	b.took(first) // which is late, and no longer the reader
	if len(b.frames) != 0 || len(b.past) != 1 {
		t.Errorf("%d messages come again, %d have gone out; want 0 and 1", len(b.frames), len(b.past))
	}
}
