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
		text   string
	}{
		{`"status":"completed"`, scenarios.ToolShown, "c"},
		{`"status":"completed","rawOutput":{"error":""}`, scenarios.ToolShown, "c"},
		{`"status":"completed","rawOutput":{"error":"already exists"}`, scenarios.ToolFailed, "already exists"},
		{`"status":"failed","rawOutput":"no such tool"`, scenarios.ToolFailed, "no such tool"},
		{`"status":"in_progress"`, scenarios.ToolShown, "c"},
	} {
		line := fmt.Sprintf(`{"seq":1,"from":"agent","kind":"notification","method":"session/update","msg":{"jsonrpc":"2.0",`+
			`"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c",%s}}}}`,
			c.update)
		log, err := transcript.Load(strings.NewReader("{\"acp-test\":1}\n"+line+"\n"), acpframe.Classifier{})
		if err != nil {
			t.Fatal(err)
		}
		if news, text := toolNews(log, log.At(1)); news != c.news || text != c.text {
			t.Errorf("%s: got %v %q, want %v %q", c.update, news, text, c.news, c.text)
		}
	}
}
