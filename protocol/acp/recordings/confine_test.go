package recordings_test

import (
	"strings"
	"testing"

	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/transcript"
)

func TestConfinement(t *testing.T) {
	const evil = "/evil"
	for name, c := range map[string]struct{ in, want string }{
		"a frame of no interest": {`{ "id":1,"method":"session/prompt","params":{"prompt":[{"type":"text",` +
			`"text":"/evil"}]}}`,
			`{ "id":1,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"/evil"}]}}`},
		"a server": {`{"params":{"mcpServers":[{"name":"n","command":"/evil","args":["a"]}]}}`,
			`{"params":{"mcpServers":["n"]}}`},
		"a server in capitals": {`{"PARAMS":{"MCPServers":[{"Name":"n","COMMAND":"/evil"}]}}`,
			`{"PARAMS":{"MCPServers":["n"]}}`},
		"two lists of servers": {`{"params":{"mcpServers":[],"mcpServers":[{"name":"n","url":"http://evil/"}]}}`,
			`{"params":{"mcpServers":[],"mcpServers":["n"]}}`},
		"a batch": {`[{"params":{"cwd":"/evil"}}]`, `[{"params":{"cwd":"/run/outside/evil"}}]`},
		"servers by name": {`{"params":{"mcpServers":{"n":{"command":"/evil"}}}}`,
			`{"params":{"mcpServers":{"n":{}}}}`},
		"an escaped name": {`{"params":{"\u0063wd":"/evil"}}`, `{"params":{"\u0063wd":"/run/outside/evil"}}`},
		"a detour": {`{"params":{"cwd":"/run/work/../../evil"}}`,
			`{"params":{"cwd":"/run/outside/evil"}}`},
		"a detour inside":   {`{"params":{"cwd":"/run/work/a/../b"}}`, `{"params":{"cwd":"/run/work/b"}}`},
		"a longer name":     {`{"params":{"cwd":"/running"}}`, `{"params":{"cwd":"/run/outside/running"}}`},
		"a relative detour": {`{"params":{"cwd":"../../evil"}}`, `{"params":{"cwd":"/run/outside/evil"}}`},
		"a folder inside":   {`{"params":{"cwd":"/run/work"}}`, `{"params":{"cwd":"/run/work"}}`},
		"further folders": {`{"params":{"additionalDirectories":["/run/x","/evil"]}}`,
			`{"params":{"additionalDirectories":["/run/x","/run/outside/evil"]}}`},
		"a file": {`{"params":{"uri":"file:///evil"}}`,
			`{"params":{"uri":"file:///run/outside/evil"}}`},
		"a file inside": {`{"params":{"uri":"file:///run/work/a%20b"}}`,
			`{"params":{"uri":"file:///run/work/a%20b"}}`},
		"a file by a detour": {`{"params":{"uri":"FILE:///run/%2e%2e/evil"}}`,
			`{"params":{"uri":"file:///run/outside/evil"}}`},
		"a file of another host": {`{"params":{"uri":"file://h/run/x"}}`,
			`{"params":{"uri":"file:///run/outside/h/run/x"}}`},
		"a file in pieces": {`{"params":{"uri":" fi\nle:\\\\\\evil"}}`,
			`{"params":{"uri":"file:///run/outside/evil"}}`},
		"a page": {`{"params":{"uri":"https://example.com/evil"}}`,
			`{"params":{"uri":"https://example.com/evil"}}`},
		"a path of Windows": {`{"params":{"cwd":"C:\\evil"}}`, `{"params":{"cwd":"/run/outside/C/evil"}}`},
		"settings": {`{"params":{"_meta":{"traceparent":"00","n":1,"claudeCode":{"executable":"/evil"}` +
			`,"s":"x"}}}`, `{"params":{"_meta":{"traceparent":"00","n":1}}}`},
		"a program elsewhere": {`{"method":"_x/run","params":{"command":"/evil","args":["-c"],"n":1}}`,
			`{"method":"_x/run","params":{"n":1}}`},
		"a capability": {`{"params":{"clientCapabilities":{"elicitation":{"url":{}}}}}`,
			`{"params":{"clientCapabilities":{"elicitation":{"url":{}}}}}`},
		"an answer": {`{"id":1,"result":{"output":"/evil"}}`, `{"id":1,"result":{"output":"/evil"}}`},
		"an answer with params": {`{"id":1,"result":{},"params":{"cwd":"/evil"}}`,
			`{"id":1,"result":{},"params":{"cwd":"/run/outside/evil"}}`},
		"a torn line":            {`{"id":1`, `{"id":1`},
		"servers in a torn line": {`{"params":{"mcpServers":[{"command":"/evil"}],}}`, ""},
		"escapes in a torn line": {`{"params":{"\u0063wd":"/evil"},}`, ""},
	} {
		made := false
		confinement := recordings.Confinement{Root: "/run", Work: "/run/work",
			Server:  func(s recordings.Server) ([]byte, error) { return []byte(`"` + s.Name + `"`), nil },
			Outside: func(dir string) error { made = strings.HasPrefix(dir, "/run/"); return nil }}
		got, err := confinement.Frame([]byte(c.in))
		if string(got) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
		if strings.Contains(c.want, `wd":"/run/outside`) && !made {
			t.Errorf("%s: the folder was not made", name)
		}
		if strings.Contains(string(got), `wd":"`+evil) {
			t.Errorf("%s: %s is given", name, evil)
		}
	}
}

func TestStandInWays(t *testing.T) {
	for _, way := range canary.Ways {
		line := `{"seq":1,"from":"editor","kind":"request","id":1,"method":"session/new",` +
			`"msg":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"mcpServers":[` +
			`{"name":"canary","command":"/c","args":[],` +
			`"env":[{"name":"CANARY_TOKEN","value":"w"},{"name":"` + way + `","value":"1"}]}]}}}` + "\n"
		log, err := transcript.Load(strings.NewReader(`{"acp-test":3}`+"\n"+line), acpframe.Classifier{})
		if err != nil {
			t.Fatal(err)
		}
		servers := recordings.Servers(log)
		if len(servers) != 1 || servers[0].As != way {
			t.Errorf("%s: the servers of the recording are %+v", way, servers)
		}
	}
}
