package fakellm_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

func freePort() string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	return port
}

var _ = Describe("the trap", func() {
	var p *fakellm.Trap
	var r rig
	var through *http.Client
	BeforeEach(func() {
		log, err := transcript.New(transcript.Header{}, transcript.Options{})
		Expect(err).NotTo(HaveOccurred())
		r = serving(plain)
		r.log = log
		p, err = fakellm.StartTrap(log)
		Expect(err).NotTo(HaveOccurred())
		u, err := url.Parse(p.URL())
		Expect(err).NotTo(HaveOccurred())
		// http.ProxyURL is asked for loopback addresses too.
		t := &http.Transport{Proxy: http.ProxyURL(u)}
		through = &http.Client{Transport: t}
		DeferCleanup(func() {
			t.CloseIdleConnections()
			Expect(p.Close()).To(Succeed())
			Expect(log.Close()).To(Succeed())
		})
	})
	It("refuses and notes what goes out, plain or encrypted", func() {
		res, err := through.Get("http://telemetry.example/collect?x=1")
		Expect(err).NotTo(HaveOccurred())
		res.Body.Close()
		Expect(res.StatusCode).To(Equal(403))
		_, err = through.Get("https://updates.example/")
		Expect(err).To(MatchError(ContainSubstring("Forbidden")))
		Expect(string(r.entries(fakellm.Egress)[0].Raw)).
			To(Equal(`{"method":"GET","host":"telemetry.example","path":"/collect","seen_by":"proxy"}`))
		Expect(r.entries(fakellm.Egress)).To(HaveLen(2))
		Expect(r.entries(fakellm.Egress)[1].JSON().Get("host").Str()).To(Equal("updates.example:443"))
	})
	It("lets loopback pass, plain and as a tunnel", func() {
		res, err := through.Get(r.URL() + "/v1/models")
		Expect(err).NotTo(HaveOccurred())
		res.Body.Close()
		Expect(res.StatusCode).To(Equal(200))

		host := strings.TrimPrefix(r.URL(), "http://")
		c, err := net.Dial("tcp", strings.TrimPrefix(p.URL(), "http://"))
		Expect(err).NotTo(HaveOccurred())
		defer c.Close()
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host)
		in := bufio.NewReader(c)
		first, err := in.ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		Expect(first).To(HavePrefix("HTTP/1.1 200"))
		_, err = in.ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(c, "GET /v1/models HTTP/1.1\r\nHost: %s\r\n\r\n", host)
		answer, err := http.ReadResponse(in, nil)
		Expect(err).NotTo(HaveOccurred())
		answer.Body.Close()
		Expect(answer.StatusCode).To(Equal(200))
		Expect(r.entries(fakellm.Egress)).To(BeEmpty())
	})

	It("keeps no connection to an address that another server may have next", func() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		r.Serve(l)
		res, err := http.Get("http://" + l.Addr().String() + "/v1/models")
		Expect(err).NotTo(HaveOccurred())
		res.Body.Close()
		Expect(res.Close).To(BeTrue(), "the answer does not say that its connection ends")
	})

	It("lets pass only what it was told, on more than one listener", func() {
		narrow, err := fakellm.StartTrap(r.log, strings.TrimPrefix(r.URL(), "http://"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(narrow.Close)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		narrow.Serve(l)
		other := serving(plain)
		for _, addr := range []string{fmt.Sprint("127.0.0.1:", narrow.Port()), l.Addr().String()} {
			t := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr}), DisableKeepAlives: true}
			through := &http.Client{Transport: t}
			for host, status := range map[string]int{r.URL(): 200, other.URL(): 403} {
				res, err := through.Get(host + "/v1/models")
				Expect(err).NotTo(HaveOccurred())
				res.Body.Close()
				Expect(res.StatusCode).To(Equal(status))
			}
		}
		Expect(r.entries(fakellm.Egress)).To(HaveLen(2))
		for _, e := range r.entries(fakellm.Egress) {
			Expect("http://" + e.JSON().Get("host").Str()).To(Equal(other.URL()))
		}
	})
})
