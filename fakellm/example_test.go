package fakellm_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/wire"
)

// A script that is built in Go: the model calls a tool, and when it is asked
// again with the result, it says a text.
func ExampleNewScript() {
	script, err := fakellm.NewScript(fakellm.NewTurn(
		fakellm.NewReply(fakellm.CallTool("write_file", map[string]any{"path": "a.txt", "content": "hi"})),
		fakellm.NewReply(fakellm.Text("I wrote "), fakellm.HoldAt("middle"), fakellm.Text("a.txt.")),
	))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(script.Turns[0].Replies), "replies, gates", script.Gates())
	// Output:
	// 2 replies, gates [middle]
}

// A server speaks the wire formats of the large providers.
func ExampleStart() {
	script, err := fakellm.NewScript(fakellm.NewTurn(fakellm.NewReply(fakellm.Text("Hello."))))
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := fakellm.Start(fakellm.Config{Script: script})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	request, err := http.NewRequest("POST", server.URL()+"/v1/chat/completions", strings.NewReader(
		`{"model":"any","messages":[{"role":"user","content":"Say hello."}],`+
			`"tools":[{"type":"function","function":{"name":"f"}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	request.Header.Set("Authorization", "Bearer sk-any")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	body := make([]byte, 64<<10)
	n, _ := response.Body.Read(body)
	v, err := wire.Parse(body[:n])
	fmt.Println(v.Path("choices.0.message.content").Str(), err)
	// Output:
	// Hello. <nil>
}
