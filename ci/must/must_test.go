package must_test

import (
	"errors"
	"testing"

	"github.com/acp-test/acp-test/ci/must"
)

func TestTryReturnsTheFirstError(t *testing.T) {
	first, closed, went := errors.New("first"), false, false
	err := must.Try(func() {
		defer func() { closed = true }()
		if got := must.Get(7, nil); got != 7 {
			t.Errorf("got %d, want 7", got)
		}
		must.Do(nil)
		must.Fail("reading: %w", first)
		went = true
	})
	if !errors.Is(err, first) || err.Error() != "reading: first" || !closed || went {
		t.Errorf("got %v, closed %v, went on %v", err, closed, went)
	}
	if err := must.Try(func() {}); err != nil {
		t.Errorf("got %v from a function without errors", err)
	}
}

func TestTryPassesOtherPanicsOn(t *testing.T) {
	defer func() {
		if recover() != "bug" {
			t.Error("the panic of a bug was taken for an error")
		}
	}()
	_ = must.Try(func() { panic("bug") })
}
