package refagent_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestRefagent(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "refagent")
}
