package recordings

import (
	"iter"
	"path"
	"strings"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Files returns files of the workspace with the contents that they had before anyone wrote to them. A recording shows
// such content if the agent read the file through the editor, or if a diff has the old text. Names are relative to the
// workspace, with slashes.
func Files(t *transcript.Transcript) map[string][]byte {
	work, _ := replay.Directories(V1(), t)
	files := map[string][]byte{}
	touched := map[string]bool{}
	put := func(name, text string) {
		rel, ok := strings.CutPrefix(name, strings.TrimSuffix(work, "/")+"/")
		if !ok || work == "" || touched[name] || rel != path.Clean(rel) || strings.HasPrefix(rel, "../") {
			return
		}
		touched[name] = true
		files[rel] = []byte(text)
	}
	asked := map[int]wire.Value{}
	for e := range replay.Frames(t) {
		v := e.JSON()
		switch {
		case e.Kind == transcript.Request && e.Method == "fs/read_text_file":
			asked[e.Seq] = v.Get("params")
		case e.Kind == transcript.Request && e.Method == "fs/write_text_file":
			touched[v.Path("params.path").Str()] = true
		case e.Kind == transcript.Response && e.Method == "fs/read_text_file":
			p := asked[e.Ref]
			if c := v.Path("result.content"); c.Kind() == wire.String && !p.Get("line").Exists() && !p.Get("limit").Exists() {
				put(p.Get("path").Str(), c.Str())
			}
		case acpframe.Update(e) == "tool_call", acpframe.Update(e) == "tool_call_update",
			e.Method == "session/request_permission" && e.Kind == transcript.Request:
			for name, old := range oldTexts(v.Get("params")) {
				put(name, old)
			}
		}
	}
	return files
}

// oldTexts yields the files in the diffs of a tool call, each with its old text.
func oldTexts(params wire.Value) iter.Seq2[string, string] {
	content := params.Path("update.content")
	if !content.Exists() {
		content = params.Path("toolCall.content")
	}
	return func(yield func(name, old string) bool) {
		for c := range content.Items() {
			old := c.Get("oldText").Str()
			if c.Get("type").Is("diff") && old != "" && !yield(c.Get("path").Str(), old) {
				return
			}
		}
	}
}
