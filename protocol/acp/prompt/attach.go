package prompt

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/mockclient"
)

// mention matches the mention of a file in a typed prompt: @ and the file's path in the workspace.
var mention = lazy.Regexp(`(?:^|\s)@(\S+)`)

// blocks returns a prompt's text and attachments. The first prompt includes the files and URLs that the user gave in
// the options. A prompt that the user typed also includes the workspace files that its text mentions.
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
