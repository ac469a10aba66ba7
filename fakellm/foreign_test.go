package fakellm_test

import (
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
)

var _ = Describe("a request of a web page", func() {
	post := func(host string, headers ...string) int {
		s, err := fakellm.Start(fakellm.Config{})
		Expect(err).NotTo(HaveOccurred())
		defer s.Close()
		r, err := http.NewRequest("POST", s.URL()+"/v1/chat/completions",
			strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"x"}]}`))
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Authorization", "Bearer k")
		if host != "" {
			r.Host = host
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := http.DefaultClient.Do(r)
		Expect(err).NotTo(HaveOccurred())
		answer.Body.Close()
		return answer.StatusCode
	}
	DescribeTable("is refused", func(host string, headers ...string) {
		Expect(post(host, headers...)).To(Equal(http.StatusForbidden))
	},
		Entry("another name", "attacker.example"),
		Entry("another name with a port", "attacker.example:80"),
		Entry("a name like an address", "127.0.0.1.attacker.example"),
		Entry("another origin", "", "Origin", "http://attacker.example"),
		Entry("another site", "", "Sec-Fetch-Site", "cross-site"),
	)
	DescribeTable("of this machine is answered", func(host string, headers ...string) {
		Expect(post(host, headers...)).NotTo(Equal(http.StatusForbidden))
	},
		Entry("as it is", ""), Entry("localhost", "localhost:1"), Entry("IPv6", "[::1]:80"),
		Entry("from a container", "host.docker.internal:8080"),
		Entry("a page of its own", "", "Origin", "http://localhost:3000"),
		Entry("the same site", "", "Sec-Fetch-Site", "same-origin"),
	)
	It("that never ends its headers is cut off", func() {
		s, err := fakellm.Start(fakellm.Config{})
		Expect(err).NotTo(HaveOccurred())
		defer s.Close()
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
		Expect(err).NotTo(HaveOccurred())
		defer c.Close()
		_, err = c.Write([]byte("POST / HTTP/1.1\r\nHost: x"))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.SetReadDeadline(time.Now().Add(time.Minute))).To(Succeed())
		_, err = c.Read(make([]byte, 1))
		for err == nil { // an answer may come before the end
			_, err = c.Read(make([]byte, 1000))
		}
		Expect(err).NotTo(MatchError(ContainSubstring("timeout")))
	})
})
