package canonical_test

import (
	"flag"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestCanonical(t *testing.T) {
	RegisterFailHandler(Fail)
	moreChecks(t)
	RunSpecs(t, "canonical")
}

// moreChecks raises the number of random conversations from rapid's 100, which
// meet the rarer pairs of entries only now and then.
func moreChecks(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("500"); err != nil {
			t.Fatal(err)
		}
	}
}
