//go:build unix

package main_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/scenarios/results"
)

var _ = Describe("an agent over a network", func() {
	const hello = "prompt 'Hello.'\nawait turn end_turn\ncheck a\nsaw agent_message\n"

	It("is played by serve for one editor, over HTTP and by a WebSocket", func() {
		for _, scheme := range []string{"http://", "ws://"} {
			p := newPlace()
			p.write("hello.txtar", hello)
			at := p.listening("serve", "--listen", "127.0.0.1:0", "--out", "served", "--report", "text=served.txt")
			got := p.run("run", "--url", strings.Replace(at, "http://", scheme, 1), "--no-smoke", "hello.txtar")
			Expect(got.out).To(ContainSubstring("1 scenario: 1 pass"), got.err)
			Eventually(func() []string { return p.files("served.txt") }).WithTimeout(20 * time.Second).
				ShouldNot(BeEmpty())
			Expect(p.read("served.txt")).To(ContainSubstring("PASS"))
		}
	})

	It("is recorded on the way, over HTTP and by a WebSocket, as on pipes and without tokens", func() {
		p := newPlace()
		p.env = append(p.env, "TOKEN=s3cr3t-of-mine")
		p.write("hello.txtar", hello)
		p.write("agent.txtar", "role agent\non prompt {\n\ttext Hello.\n\tend end_turn\n}\n")
		got := p.run("run", "--no-smoke", "hello.txtar", "--", "acp-test", "record", "--out", p.dir+"/stdio.jsonl",
			"--",
			"acp-test", "serve", p.dir+"/agent.txtar", "-q", "--out", p.dir+"/served")
		Expect(got.out).To(ContainSubstring("1 scenario: 1 pass"), got.err)
		for _, scheme := range []string{"http", "ws"} {
			to := p.listening("serve", "agent.txtar", "--listen", "127.0.0.1:0", "--quiet", "--out", "served")
			at := p.listening("record", "--protocol", "acp-v1", "--url", to, "--out", scheme+".jsonl")
			got := p.run("run", "--url", scheme+strings.TrimPrefix(at, "http"), "--header",
				"Authorization:Bearer $TOKEN",
				"--no-smoke", "hello.txtar")
			Expect(got.out).To(ContainSubstring("1 scenario: 1 pass"), got.err)
			recorded := p.read(scheme + ".jsonl")
			Expect(recorded).NotTo(ContainSubstring("s3cr3t-of-mine"))
			Expect(recorded).To(ContainSubstring(map[string]string{"http": `"form":"session"`,
				"ws": `"form":"websocket"`}[scheme]))
			got = p.run("diff", "stdio-2.jsonl", scheme+".jsonl")
			Expect(got.code).To(BeZero(), got.out+got.err)
			Expect(p.run("check", scheme+".jsonl").code).To(BeZero())
		}
	})

	It("has faults and liberties of a server there, and only there", func() {
		p := newPlace()
		got := p.run("run", "--over", "http", "--fault", "batch-run", "--run", "^remote/batch$")
		Expect(got.code).To(Equal(1), got.out+got.err)
		Expect(got.out).To(ContainSubstring("REM-009"))
		got = p.run("run", "--over", "http", "--liberty", "batch-invalid", "--run", "^remote/batch$")
		Expect(got.code).To(BeZero(), got.out+got.err)
		Expect(p.run("run", "--fault", "batch-run").err).To(ContainSubstring("there is no fault"))
		Expect(p.run("run", "--liberty", "batch-invalid").err).To(ContainSubstring("there is no liberty"))
		Expect(p.run("refagent", "--faults").out).To(ContainSubstring("\nbatch-run "))
	})

	It("is swept with a network that fails: the correct one is not blamed, one that loses events is", func() {
		oneOf(3)
		p := newPlace()
		sweep := []string{"sweep", "--over", "http", "--run", "^tool-calls/read$", "--actions", "stream *", "--actions",
			"cancel lost", "--actions", "cancel un*", "--actions", "cancel doubled", "--max", "12", "--confirm", "1"}
		got := p.run(sweep...)
		Expect(got.code).To(BeZero(), got.out+got.err)
		Expect(got.out).To(And(ContainSubstring("stream cut"), ContainSubstring("cancel lost"),
			ContainSubstring("; 0 findings;")))
		got = p.run("sweep", "--over", "http", "--run", "^tool-calls/read$", "--actions", "stream *", "--max", "16",
			"--confirm", "1",
			"--fault", "cursor-gap")
		Expect(got.out).To(MatchRegexp("; [1-9] findings?;"), got.err)
	})

	It("is reached over TLS, by the trust of SSL_CERT_FILE alone, and with a token that no file has", func() {
		p := newPlace()
		p.write("hello.txtar", hello)
		p.env = append(p.env, "ACP_TEST_REFAGENT_TOKENS=s3cr3t-of-mine", "TOKEN=s3cr3t-of-mine")
		at, err := url.Parse(p.listening("refagent", "--listen", "127.0.0.1:0"))
		Expect(err).NotTo(HaveOccurred())
		front := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: at.Scheme, Host: at.Host})
		front.FlushInterval = -1
		secure := httptest.NewTLSServer(front)
		DeferCleanup(secure.Close)
		p.write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
		for _, scheme := range []string{"https", "wss"} {
			to := scheme + strings.TrimPrefix(secure.URL, "https") + at.Path
			command := []string{"run", "--url", to, "--header", "Authorization:Bearer $TOKEN", "--out", scheme,
				"hello.txtar"}
			Expect(p.run(command...).out).To(ContainSubstring("certificate"), "nobody trusts it yet")
			trusted := *p
			trusted.env = append(slices.Clone(p.env), "SSL_CERT_FILE=ca.pem")
			got := trusted.run(command...)
			Expect(got.out).To(ContainSubstring("OPENAI_BASE_URL is not set"), "the agent answers")
			Expect(got.out).NotTo(ContainSubstring("certificate"))
			for _, file := range append(p.files(scheme+"/*"), p.files(scheme+"/*/*")...) {
				if text, err := os.ReadFile(file); err == nil {
					Expect(string(text)).NotTo(ContainSubstring("s3cr3t-of-mine"), file)
				}
			}
		}
	})
})

// troubles maps each mistake of a client on a failing network to the checks that find it.
var troubles = map[string][]string{
	"resends":       {"w03-unanswered#not-again", "w06-restart#not-again", "w07-cut#not-again", "w08-ended#not-again"},
	"storms":        {"w01-unavailable#no-storm", "w05-expired#no-storm"},
	"doubles":       {"w02-unavailable-once#not-doubled", "w04-lost#not-doubled"},
	"by-lines":      {"w07-cut#half-is-nothing"},
	"plain-forms":   {"w09-forms#every-form"},
	"drops-late":    {"w10-load-late#history"},
	"drops-early":   {"w11-load-first#history"},
	"wants-history": {"w10-load-late#prompt-after-load"},
	"wants-answer":  {"w11-load-first#prompt-after-load"},
}

var _ = Describe("a network that fails in front of an editor", func() {
	client, err := filepath.Abs("../../ci/editors/net-client.mjs")
	Expect(err).NotTo(HaveOccurred())
	// judged plays the scenarios of some checks to a client, and returns the checks that pass and those that do not.
	judged := func(fault string, checks []string) (passed, red []string) {
		var names []string
		p := newPlace()
		p.env = append(p.env, "FAULT="+fault)
		for _, c := range checks {
			scenario, _, _ := strings.Cut(c, "#")
			names = append(names, scenario)
			if strings.Contains(c, "load") {
				p.env = append(p.env, "LOAD=session-1")
			}
		}
		got := p.run("editors", "--run", "editors/("+strings.Join(names, "|")+")$", "-j", "4", "--", "node", client, "{url}")
		Expect(got.code).To(BeZero(), got.out+got.err) // all of it is lint
		var run results.Run
		Expect(json.Unmarshal([]byte(p.read("acp-test-out/results.json")), &run)).To(Succeed())
		for _, r := range run.Results {
			for _, c := range r.Checks {
				switch id := strings.TrimPrefix(c.ID, "editors/"); c.Verdict {
				case results.Pass:
					passed = append(passed, id)
				case results.Lint:
					red = append(red, id)
				}
			}
		}
		return passed, red
	}
	for fault, checks := range troubles {
		It("finds a client that "+fault+", and blames none that ends", func() {
			_, red := judged(fault, checks)
			Expect(red).To(ConsistOf(checks))
			passed, red := judged("", checks)
			Expect(red).To(BeEmpty())
			Expect(passed).To(ContainElements(checks))
		})
	}

	It("is skipped for an editor that has no network, and for a WebSocket without such trouble", func() {
		p := newPlace()
		got := p.run("prompt", "Hello.", "--", "acp-test", "serve", "w05", "--out", p.dir+"/served", "--report",
			"text="+p.dir+"/served.txt")
		Expect(p.read("served.txt")).To(ContainSubstring("without a network"), got.out+got.err)
	})
})
