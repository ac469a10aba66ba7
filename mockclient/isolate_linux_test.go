package mockclient_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
)

func init() {
	programs["isolate"] = isolate.Main
	// agent-caller says for each address whether it can be reached, and who it
	// is itself.
	programs["agent-caller"] = func(addresses []string) int {
		tell := func(what, got string) {
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":{\"got\":%q}}\n", what, got)
		}
		for _, a := range addresses {
			c, err := net.DialTimeout("tcp", a, 5*time.Second)
			if err != nil {
				tell(a, err.Error())
				continue
			}
			fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
			buf := make([]byte, 4096)
			n, _ := c.Read(buf)
			tell(a, string(buf[:n]))
			c.Close()
		}
		tell("uid", fmt.Sprint(os.Getuid()))
		text, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(text)) {
			if kind, caps, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(kind, "Cap") {
				tell(kind, strings.TrimSpace(caps))
			}
		}
		return 0
	}
}

// namespaces fails where an agent cannot be isolated. Somebody who knows that a
// machine cannot says so in ACP_TEST_NO_NAMESPACES; then the error is tested.
func namespaces() bool {
	GinkgoHelper()
	err := isolate.Check([]string{self, "isolate"})
	if os.Getenv("ACP_TEST_NO_NAMESPACES") != "" {
		Expect(err).To(MatchError(isolate.ErrUnavailable), "ACP_TEST_NO_NAMESPACES is set, but there are namespaces")
		return false
	}
	Expect(err).NotTo(HaveOccurred(),
		"allow namespaces on this machine (on Ubuntu 24: sysctl kernel.apparmor_restrict_unprivileged_userns=0), or "+
			"set ACP_TEST_NO_NAMESPACES=1 if it cannot have them")
	return true
}

var _ = Describe("an isolated agent", func() {
	for _, keeper := range [][]string{keeperCommand, nil} {
		It(fmt.Sprintf("reaches its ports and nothing else: keeper %t", keeper != nil), func() {
			if !namespaces() {
				return
			}
			listen := func() net.Listener {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(l.Close)
				return l
			}
			inside := &http.Server{
				Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the model") }),
			}
			DeferCleanup(inside.Close)
			model, other := listen(), listen()
			started := newTranscript()
			var gone net.Listener
			a, err := mockclient.Start(within(), started, 0, mockclient.Command{
				Path: self, Args: []string{"agent-caller", model.Addr().String(), other.Addr().String(), "192.0.2.1:80",
					"[2001:db8::1]:80"},
				Keeper: keeper,
				Isolation: &isolate.Isolation{
					Helper: []string{self, "isolate"}, Dir: GinkgoT().TempDir(),
					Ports: []isolate.Port{{Number: model.Addr().(*net.TCPAddr).Port, Serve: func(l net.Listener) {
						gone = l
						go func() { _ = inside.Serve(l) }() // until it is closed
					}}},
				},
			})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() { a.Stop(context.Background()) })
			Eventually(a.Exited()).Should(BeClosed())
			Expect(gone.Addr().String()).To(Equal(model.Addr().String()))
			got := map[string]string{}
			for e := range started.All() {
				if e.Source == transcript.Agent {
					got[e.Method] = e.JSON().Path("params.got").Str()
				}
				if e.Kind == transcript.Started {
					Expect(e.JSON().Get("isolated").Text()).To(Equal("true"))
				}
			}
			Expect(got[model.Addr().String()]).To(HaveSuffix("the model"))
			Expect(got[other.Addr().String()]).To(ContainSubstring("refused"))
			Expect(got["192.0.2.1:80"]).To(ContainSubstring("unreachable"))
			Expect(got["[2001:db8::1]:80"]).To(Or(ContainSubstring("unreachable"), ContainSubstring("cannot assign")))
			Expect(got["uid"]).To(Equal(fmt.Sprint(os.Getuid())))
			for _, kind := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
				Expect(got[kind]).To(Equal("0000000000000000"), kind)
			}
			exit, _ := a.Exit()
			Expect(exit.Code).To(BeZero())
		})
	}

	It("does not start if its port is taken or its program cannot run", func() {
		if !namespaces() {
			return
		}
		start := func(c mockclient.Command) error {
			c.Keeper = keeperCommand
			_, err := mockclient.Start(within(), newTranscript(), 0, c)
			return err
		}
		port := isolate.Port{Number: 4010, Serve: func(l net.Listener) { l.Close() }}
		twice := &isolate.Isolation{Helper: []string{self, "isolate"}, Dir: GinkgoT().TempDir(),
			Ports: []isolate.Port{port, port}}
		Expect(start(mockclient.Command{Path: self, Isolation: twice})).
			To(MatchError(ContainSubstring("address already in use")))
		gone := &isolate.Isolation{Helper: []string{self, "isolate"}, Dir: "/none"}
		Expect(start(mockclient.Command{Path: self, Isolation: gone})).
			To(MatchError(ContainSubstring("isolating the agent: open /none")))
		far := filepath.Join(GinkgoT().TempDir(), strings.Repeat("x", 120))
		Expect(os.Mkdir(far, 0o755)).To(Succeed())
		Expect(start(mockclient.Command{Path: self, Args: []string{"agent-caller"},
			Isolation: &isolate.Isolation{Helper: []string{self, "isolate"}, Dir: far}})).To(Succeed())
		Expect(start(mockclient.Command{Path: self, Isolation: &isolate.Isolation{}})).
			To(MatchError(ContainSubstring("command line is empty")))
	})

	It("says what is missing", func() {
		err := isolate.Check([]string{"/bin/false"})
		Expect(errors.Is(err, isolate.ErrUnavailable)).To(BeTrue())
		Expect(err).To(
			MatchError(And(HavePrefix("the namespaces that --isolate needs are not available: "), HaveSuffix(")"))),
		)
	})
})
