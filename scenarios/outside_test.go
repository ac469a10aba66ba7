package scenarios_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/internal/isolate"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
)

// call is an agent that says in its turn what it can reach: for each word a
// URL it asks for, through the proxy of its environment, or host:port.
func call(targets []string) int {
	reach := func(target string) string {
		if strings.Contains(target, "://") {
			client := &http.Client{Timeout: 5 * time.Second}
			res, err := client.Get(target)
			if err != nil {
				return err.Error()
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			return res.Status + " " + string(body)
		}
		c, err := net.DialTimeout("tcp", target, 5*time.Second)
		if err != nil {
			return err.Error()
		}
		c.Close()
		return "connected"
	}
	in := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var m struct {
			ID     any    `json:"id"`
			Method string `json:"method"`
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		var result any = map[string]any{}
		switch m.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{}, "authMethods": []any{}}
		case "session/new":
			result = map[string]any{"sessionId": "s"}
		case "session/prompt":
			for _, t := range append(targets, os.Getenv("LLM")+"/v1/models") {
				_ = out.Encode(map[string]any{"jsonrpc": "2.0", "method": "session/update",
					"params": map[string]any{"sessionId": "s",
						"update": map[string]any{
							"sessionUpdate": "agent_message_chunk",
							"content":       map[string]any{"type": "text", "text": t + ": " + reach(t) + "\n"},
						}}})
			}
			result = map[string]any{"stopReason": "end_turn"}
		}
		_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	}
	return 0
}

// caller is an engine for that agent.
func caller(targets ...string) *scenarios.Engine {
	e := engineFor(&agents.Profile{Name: "caller", Command: append([]string{"$SELF", "caller"}, targets...),
		Env: map[string]string{"LLM": "$LLM"}, Timeouts: agents.Timeouts{Start: 20 * time.Second}})
	return e
}

func egress(r results.Result) []results.Finding {
	var out []results.Finding
	for _, f := range r.Findings {
		if f.Rule == results.EgressRule {
			out = append(out, f)
		}
	}
	return out
}

var _ = Describe("what an agent wants from other machines", func() {
	script := func(said ...string) string {
		s := "check reached\nprompt 'Go.'\nawait turn end_turn\n"
		for _, text := range said {
			s += "text ~ '" + text + "'\n"
		}
		return s + hello
	}

	It("is refused and a finding for each host, as the proxy saw it", func() {
		r := run(caller("http://telemetry.example/collect", "http://telemetry.example/again",
			"https://updates.example/"),
			script("telemetry.example/collect: 403 .*lets no agent out", "updates.example/: .*Forbidden",
				"v1/models: 200"))
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
		found := egress(r)
		Expect(found).To(HaveLen(2), text(r))
		Expect(found[0].Class).To(Equal(results.Lint))
		Expect(found[0].Message).To(Equal("The agent tried to reach telemetry.example, and acp-test's proxy refused."))
		Expect(found[0].Detail).To(ContainSubstring("GET telemetry.example/collect"))
		Expect(found[0].Count).To(Equal(2))
		Expect(found[0].Entries).To(HaveLen(2))
		Expect(found[1].Message).To(ContainSubstring("updates.example:443"))
	})

	It("is nobody's business without the trap", func() {
		outside, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		proxy := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "the user's proxy")
		})}
		go func() { _ = proxy.Serve(outside) }() // until it is closed
		DeferCleanup(proxy.Close)

		e := caller("http://telemetry.example/collect")
		e.NoTrap = true
		e.Env = map[string]string{"HTTP_PROXY": "http://" + outside.Addr().String()}
		r := run(e, script("the user.s proxy"))
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
		Expect(egress(r)).To(BeEmpty())

		e.NoTrap = false // a proxy the user names wins all the same
		r = run(e, script("the user.s proxy"))
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
		Expect(egress(r)).To(BeEmpty())
	})

	It("is not asked of launchers that may have to fetch the agent, and the run says so", func() {
		e := engineFor(agents.AdHoc([]string{"npx", "some-agent"}))
		s, err := acp.V1().Parse("case", "case.txtar", []byte(script()))
		Expect(err).NotTo(HaveOccurred())
		e.Host = []string{"PATH=" + GinkgoT().TempDir()}
		run := e.RunAll(GinkgoTB().Context(), []*scenarios.Scenario{s}, scenarios.Plan{})
		Expect(run.Notes).To(
			ContainElement(HavePrefix("the agent ran without the proxy that blocks connections to other machines, as npx " +
				"may have to download the agent")),
		)
	})

	It("cannot be reached at all in isolation", func() {
		if !namespaces() {
			return
		}
		other, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(other.Close)
		addr := other.Addr().String()
		e := caller("192.0.2.1:80", addr, "http://telemetry.example/collect", "http://"+addr+"/")
		// Loopback too goes through the proxy, as a way out would.
		e.Env = map[string]string{"NO_PROXY": "none.example"}
		e.Isolate = true
		r := run(e, script("192.0.2.1:80: .*unreachable", "(?m)^"+addr+": .*refused", "telemetry.example/collect: 403",
			"http://"+addr+"/: .*refused", "v1/models: 200"))
		Expect(r.Verdict).To(Equal(results.Pass), text(r))
		Expect(egress(r)).To(HaveLen(1))
	})

	It("does not keep the reference agent from its model and its servers, whether isolated or not", func() {
		for _, isolate := range []bool{false, true} {
			if isolate && !namespaces() {
				return
			}
			e := engine()
			e.Isolate = isolate
			r := run(e, "mcp canary http\npermit allow_once\ncheck a\nprompt 'Sing.'\nawait turn end_turn\n"+
				"canary called text=la\n-- llm.yaml --\nreplies:\n  - - tool: mcp\n"+
				"      args: {server: canary, tool: canary_sing, args: {text: la}}\n  - - text: Sung.\n")
			Expect(r.Verdict).To(Equal(results.Pass), text(r))
			Expect(egress(r)).To(BeEmpty())
		}
	})
})

// namespaces fails where an agent cannot be isolated, unless somebody says
// that this machine cannot: no test is skipped without anyone's knowing.
func namespaces() bool {
	GinkgoHelper()
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	err = isolate.Check([]string{self, "isolate"})
	if runtime.GOOS != "linux" || os.Getenv("ACP_TEST_NO_NAMESPACES") != "" {
		Expect(err).To(MatchError(isolate.ErrUnavailable))
		return false
	}
	Expect(err).NotTo(HaveOccurred(),
		"allow namespaces on this machine, or set ACP_TEST_NO_NAMESPACES=1 if it cannot have them")
	return true
}
