package words

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// stops has the methods with which an editor stops the agent's work.
var stops = []string{"session/cancel", "session/close", "$/cancel_request", "tool_call/cancel", "terminal/cancel"}

// shows has the kinds of updates, other than tool call updates, that show the effect of a tool.
var shows = []string{"plan", "current_mode_update", "config_option_update"}

// toolNews returns what an entry reports about tool calls. The kind is ToolDenied if the editor rejected a permission,
// answered with an error or stopped the turn. It is ToolFailed if the agent reports a failed call; Says has the text.
// It is ToolShown if the agent shows a call or another effect of a tool. Otherwise the result is the zero value.
func toolNews(t *transcript.Transcript, e transcript.Entry) (news scenarios.ToolNews) {
	switch {
	case e.Source == transcript.Editor && e.Kind == transcript.Response:
		switch code := e.JSON().Path("error.code"); {
		case e.Method == "fs/read_text_file" && code.Text() == "-32002":
			return news // the file does not exist; many tools check that first
		case code.Exists():
			return scenarios.ToolNews{Kind: scenarios.ToolDenied}
		case e.Method != "session/request_permission":
			return news
		case grants(t.At(e.Ref), answered(e)):
			return news
		}
		return scenarios.ToolNews{Kind: scenarios.ToolDenied}
	case e.Source == transcript.Editor && slices.Contains(stops, e.Method):
		return scenarios.ToolNews{Kind: scenarios.ToolDenied}
	case e.Source == transcript.Agent && (slices.Contains(shows, acpframe.Update(e)) || e.Method == "elicitation/create"):
		return scenarios.ToolNews{Kind: scenarios.ToolShown, Call: fmt.Sprint(e.Seq)}
	case e.Source == transcript.Agent && strings.HasPrefix(acpframe.Update(e), "tool_call"):
		u := e.JSON().Path("params.update")
		news = scenarios.ToolNews{Kind: scenarios.ToolShown, Call: u.Get("toolCallId").Str()}
		switch u.Get("status").Str() {
		case "failed", "cancelled":
			news.Kind, news.Says = scenarios.ToolFailed, toolText(u)
		case "completed":
			// Some agents report a failure only in the raw output.
			if text := u.Path("rawOutput.error").Str(); text != "" {
				news.Kind, news.Says = scenarios.ToolFailed, text
			}
		}
		return news
	}
	return news
}

// grants reports whether an option of a permission request allows the call.
func grants(request transcript.Entry, id string) bool {
	option := request.JSON().Path("params.options").Find("optionId", id)
	return strings.HasPrefix(option.Get("kind").Str(), "allow")
}

// toolText returns the texts of a tool call update. If there are none, it returns the raw output.
func toolText(update wire.Value) string {
	var texts []string
	for c := range update.Get("content").Items() {
		if text := c.Path("content.text").Str(); text != "" {
			texts = append(texts, text)
		}
	}
	if raw := update.Get("rawOutput"); len(texts) == 0 && raw.Exists() {
		return raw.Text()
	}
	return strings.Join(texts, "\n")
}
