package prompt

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/mockclient"
)

// mention is a file in a prompt that was typed: @ and its path in the workspace.
var mention = lazy.Regexp(`(?:^|\s)@(\S+)`)

// blocks are the text of a prompt and what is attached to it: with the first prompt what the user
// named beside it, and files of the workspace that the text mentions, if it was typed.
func (t *Client) blocks(text string) ([]mockclient.Content, error) {
	blocks, files := []mockclient.Content{mockclient.Text(text)}, t.options.Attach
	t.options.Attach = nil
	if t.options.Typed || t.options.Converse {
		for _, m := range mention().FindAllStringSubmatch(text, -1) {
			name := strings.TrimRight(m[1], ".,;:!?)")
			file := filepath.Join(t.options.Work, name)
			if info, err := os.Lstat(file); filepath.IsLocal(name) && err == nil && info.Mode().IsRegular() {
				files = append(files, file)
			}
		}
	}
	for _, file := range files {
		if strings.Contains(file, "://") {
			blocks = append(blocks, mockclient.ResourceLink(path.Base(file), file))
			continue
		}
		block, err := mockclient.Attach(file, "", t.editor.Info())
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}
