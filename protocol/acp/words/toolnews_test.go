package words

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

func TestToolNews(t *testing.T) {
	for _, c := range []struct {
		update string
		news   scenarios.ToolNews
	}{
		{`"status":"completed"`, scenarios.ToolNews{Kind: scenarios.ToolShown, Call: "c"}},
		{`"status":"completed","rawOutput":{"error":""}`, scenarios.ToolNews{Kind: scenarios.ToolShown, Call: "c"}},
		{`"status":"completed","rawOutput":{"error":"already exists"}`,
			scenarios.ToolNews{Kind: scenarios.ToolFailed, Call: "c", Says: "already exists"}},
		{`"status":"failed","rawOutput":"no such tool"`,
			scenarios.ToolNews{Kind: scenarios.ToolFailed, Call: "c", Says: "no such tool"}},
		{`"status":"in_progress"`, scenarios.ToolNews{Kind: scenarios.ToolShown, Call: "c"}},
	} {
		line := fmt.Sprintf(`{"seq":1,"from":"agent","kind":"notification","method":"session/update",`+
			`"msg":{"jsonrpc":"2.0",`+
			`"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update",`+
			`"toolCallId":"c",%s}}}}`,
			c.update)
		log, err := transcript.Load(strings.NewReader("{\"acp-test\":1}\n"+line+"\n"), acpframe.Classifier{})
		if err != nil {
			t.Fatal(err)
		}
		if news := toolNews(log, log.At(1)); news != c.news {
			t.Errorf("%s: got %v, want %v", c.update, news, c.news)
		}
	}
}
