package faults_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestFaults(t *testing.T) {
	t.Chdir(t.TempDir()) // some faults make the agent work where it was started
	RegisterFailHandler(Fail)
	RunSpecs(t, "faults")
}
