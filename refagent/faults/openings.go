package faults

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
)

// openingFaults are about sessions that are opened in an odd way.
func openingFaults() []Fault {
	return []Fault{
		fault("missing-folder-hangs", "never answers session/new whose working directory is not there",
			dropped(func(m message) bool {
				cwd, _ := m.Object("params")["cwd"].(string)
				_, err := os.Stat(cwd)
				return is(m, "session/new") && filepath.IsAbs(cwd) && err != nil
			})).hangs(),
		fault("load-elsewhere-hangs", "never answers a load whose working directory is not the one of before",
			loadOnlyThere).hangs(),
		fault("deleted-load-hangs", "never answers a load of a session that was deleted", with(func(t *tap) {
			deleted := map[string]bool{}
			t.in = func(m message) bool {
				if is(m, "session/delete") {
					deleted[sessionOf(m)] = true
				}
				return !is(m, "session/load") || !deleted[sessionOf(m)]
			}
		})).hangs(),
		fault("close-behind-load-hangs", "never answers a close that comes right behind a load",
			closeLostBehind(func(m message) bool { return is(m, "session/load") })).hangs(),
		fault("close-lost-while-reading", "loses a close that comes right behind a prompt with attachments",
			closeLostBehind(attaches)).hangs(),
		fault("taken-back-new-blocks", "makes no session any more once the making of one was taken back", with(func(t *tap) {
			making, blocked := map[string]bool{}, false
			t.in = func(m message) bool {
				if is(m, "$/cancel_request") && making[key(m.Object("params")["requestId"])] {
					blocked = true
				}
				if is(m, "session/new") {
					making[key(m["id"])] = true
				}
				return !blocked || !is(m, "session/new")
			}
		})).hangs(),
	}
}

// closeLostBehind is a tap that keeps a close from the agent where the message before it is one
// of the same session that first tells.
func closeLostBehind(first func(m message) bool) func() hooks {
	return with(func(t *tap) {
		before := "" // the session of the message before, if it is such a one
		t.in = func(m message) bool {
			pass := before == "" || !is(m, "session/close") || sessionOf(m) != before
			if before = ""; first(m) {
				before = sessionOf(m)
			}
			return pass
		}
	})
}

// dropped is a tap that keeps some messages of the editor from the agent.
func dropped(which func(m message) bool) func() hooks {
	return with(func(t *tap) { t.in = func(m message) bool { return !which(m) } })
}

// loadOnlyThere keeps the answers to loads with another working directory than the log's.
func loadOnlyThere() hooks {
	var mu sync.Mutex
	asked, elsewhere := map[string]any{}, map[string]bool{} // by session
	t := &tap{}
	t.received = func(m message) {
		if is(m, "session/load") {
			mu.Lock()
			defer mu.Unlock()
			asked[sessionOf(m)] = m.Object("params")["cwd"]
		}
	}
	t.out = func(f frame) bool {
		mu.Lock()
		defer mu.Unlock()
		return !answers(f, "session/load") || !elsewhere[f.Session]
	}
	h := t.hooks()
	h.Restore = func(session string, lines [][]byte) [][]byte {
		mu.Lock()
		defer mu.Unlock()
		var first struct{ Cwd string }
		if len(lines) > 0 && json.Unmarshal(lines[0], &first) == nil {
			elsewhere[session] = asked[session] != first.Cwd
		}
		return lines
	}
	return h
}
