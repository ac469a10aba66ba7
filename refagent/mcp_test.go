package refagent_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// TestMain lets the test binary be its own stdio MCP server.
func TestMain(m *testing.M) {
	if os.Getenv("REFAGENT_TEST_MCP") != "" {
		_ = canaryServer(os.Getenv("REFAGENT_TEST_MCP")).Run(context.Background(), &mcp.StdioTransport{})
		return
	}
	os.Exit(m.Run())
}

func canaryServer(song string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "canary", Version: "1"}, nil)
	type input struct {
		Fail bool `json:"fail,omitempty"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "sing", Description: "Sings"},
		func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{IsError: in.Fail, Content: []mcp.Content{&mcp.TextContent{Text: song}}}, nil, nil
		})
	return s
}

var _ = Describe("MCP servers", func() {
	sing := func(server object, args object) (*editor, string) {
		GinkgoHelper()
		m := newModelServer(reply(callTool("c1", "mcp__bird__sing", args), finish("tool_calls")), answer("Done."))
		e := start(launch{model: m})
		broken := object{"name": "broken", "command": "/nonexistent", "args": []any{}, "env": []any{}}
		s := e.ok(e.request("session/new",
			object{"cwd": "/", "mcpServers": []any{server, broken, "not a server"}}))["sessionId"].(string)
		Expect(e.stopReason(e.prompt(s, "Sing"))).To(Equal("end_turn"))
		Expect(m.tools(0)).To(ContainElement("mcp__bird__sing"))
		told := m.messages(1)
		return e, told[len(told)-1]
	}
	stdio := func() object {
		return object{"name": "bird", "command": os.Args[0], "args": []any{},
			"env": []any{object{"name": "REFAGENT_TEST_MCP", "value": "tweet"}}}
	}

	It("over stdio offer their tools; broken ones are left out", func() {
		e, told := sing(stdio(), object{})
		Expect(told).To(Equal("tool: tweet"))
		Expect(e.update("tool_call").up("kind")).To(Equal("other"))
		e.in.Close()
		Eventually(e.ended).Should(Receive(BeNil()))
		e.ended <- nil
	})

	It("over http get the headers they were given", func() {
		var got string
		h := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
			got = r.Header.Get("X-Song")
			return canaryServer("chirp")
		}, nil)
		web := httptest.NewServer(h)
		DeferCleanup(web.Close)
		_, told := sing(object{"type": "http", "name": "bird", "url": web.URL,
			"headers": []any{object{"name": "X-Song", "value": "yes"}}}, object{})
		Expect(told).To(Equal("tool: chirp"))
		Expect(got).To(Equal("yes"))
	})

	It("fail one tool call only", func() {
		e, told := sing(stdio(), object{"fail": true})
		Expect(told).To(Equal("tool: Error: tweet"))
		Expect(e.story(0)).To(ContainElement("tool_call_update c1 failed"))
	})
})
