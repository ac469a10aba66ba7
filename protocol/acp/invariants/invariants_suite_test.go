package invariants_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestInvariants(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "invariants")
}
