package replay

import (
	"path"
	"strings"

	"github.com/acp-test/acp-test/transcript"
)

// places is the kind of the note that says where a recording was made.
const places transcript.Kind = "places"

type placesNote struct {
	Work string `json:"work"`
	Home string `json:"home,omitempty"`
}

// directories are the workspace and the home of a recording. Without a note of
// its own the workspace is that of the first session, and the home is guessed
// from where homes are.
func directories(t *transcript.Transcript) (work, home string) {
	for e := range t.All() {
		switch {
		case e.Source == transcript.Note && e.Kind == places:
			home = e.JSON().Get("home").Str()
		case work == "" && e.Source == transcript.Editor && e.Kind == transcript.Request:
			work = e.JSON().Path("params.cwd").Str()
		}
		if work != "" && (home != "" || e.Frame()) {
			break
		}
	}
	if home == "" {
		home = homeOf(work)
	}
	return work, home
}

func homeOf(work string) string {
	for _, parent := range []string{"/home/", "/Users/"} {
		if rest, ok := strings.CutPrefix(work, parent); ok {
			user, _, deeper := strings.Cut(rest, "/")
			if deeper {
				return parent + user
			}
		}
	}
	if strings.HasPrefix(work, "/root/") {
		return "/root"
	}
	if path.Base(work) == "work" { // a scenario's sandbox
		return path.Join(path.Dir(work), "home")
	}
	return ""
}
