// Package clients drives the fake model server with the vendors' own clients.
// It stands apart because they are large: neither the other tests of fakellm
// nor its fuzz targets have to wait until they are compiled.
package clients_test

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

func TestClients(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute) // the end of it is a failure, never a verdict on speed
	RunSpecs(t, "the vendors' clients of fakellm")
}

// rig is a server with its transcript.
type rig struct {
	*fakellm.Server
	log *transcript.Transcript
}

// serving starts a server of the conversation all clients hold.
func serving() rig {
	GinkgoHelper()
	src, err := os.ReadFile("../testdata/conversation.yaml")
	Expect(err).NotTo(HaveOccurred())
	script, err := fakellm.ParseScript("conversation.yaml", src, nil)
	Expect(err).NotTo(HaveOccurred())
	log, err := transcript.New(transcript.Header{Tool: "test"}, transcript.Options{})
	Expect(err).NotTo(HaveOccurred())
	s, err := fakellm.Start(fakellm.Config{Script: script, Transcript: log})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(s.Close()).To(Succeed())
		Expect(log.Close()).To(Succeed())
	})
	return rig{s, log}
}

// field reads a detail of the last entry of a kind.
func (r rig) field(k transcript.Kind, path string) string {
	text := ""
	for e := range r.log.All() {
		if e.Kind == k {
			text = e.JSON().Path(path).Text()
		}
	}
	return text
}
