package words

import (
	"testing"

	"github.com/acp-test/acp-test/wire"
)

// A request that is in the log may be handled only after the next hold was set: it must not take that hold.
func TestEachHoldTakesOneRequest(t *testing.T) {
	c := &client{}
	one := func() func(wire.Value) bool {
		left := 1
		return func(wire.Value) bool { left--; return left >= 0 }
	}
	c.heldOnce("fs/read_text_file", one())
	is := c.heldOnce("fs/read_text_file", one())
	for i, want := range []bool{true, true, false} {
		if got := is(wire.Value{}); got != want {
			t.Errorf("request %d: held %v, want %v", i+1, got, want)
		}
	}
}
