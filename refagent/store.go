package refagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// store contains one log per session in JSON Lines. Each event is appended in a single write when it happens, so that
// a session can be loaded after a crash. An incomplete last line is ignored.
type store struct{ dir string }

var sessionID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^sess_[0-9a-f]{32}$`) })

func newSessionID() string {
	return fmt.Sprintf("sess_%016x%016x", rand.Uint64(), rand.Uint64())
}

func openStore(dir string) (*store, error) {
	dir = filepath.Join(dir, "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the state directory: %w", err)
	}
	return &store{dir: dir}, nil
}

func (st *store) path(id string) string { return filepath.Join(st.dir, id+".jsonl") }

// ids returns the ids of the stored sessions.
func (st *store) ids() ([]string, error) {
	entries, err := os.ReadDir(st.dir)
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".jsonl"); ok && sessionID().MatchString(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// lines returns the lines of a session's log, or fs.ErrNotExist if there is no log.
func (st *store) lines(id string) ([][]byte, error) {
	if !sessionID().MatchString(id) {
		return nil, fs.ErrNotExist
	}
	data, err := os.ReadFile(st.path(id))
	if err != nil {
		return nil, err
	}
	return bytes.Split(data, []byte("\n")), nil
}

// fold applies the events of a log to the record and completes an interrupted turn.
func (r *record) fold(lines [][]byte) *record {
	r.read(lines)
	r.settle()
	return r
}

// read applies the events of a log to the record. The session may still be working.
func (r *record) read(lines [][]byte) {
	for _, line := range lines {
		var e event
		if len(line) > 0 && json.Unmarshal(line, &e) == nil {
			r.apply(e)
		}
	}
}

func (st *store) remove(id string) error {
	if !sessionID().MatchString(id) {
		return nil
	}
	if err := os.Remove(st.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting the session: %w", err)
	}
	return nil
}

// removeFamily removes the logs of a session and of its child sessions.
func (st *store) removeFamily(id string) error {
	lines, _ := st.lines(id) // without the log, the children are unknown
	if err := st.remove(id); err != nil {
		return err
	}
	rec := newRecord()
	rec.showing = true
	for _, u := range rec.fold(lines).shown {
		if u.Tag == "subagent_update" {
			if err := st.removeFamily(u.SessionID); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendTo opens the log of a session for appending.
func (st *store) appendTo(id string) (*os.File, error) {
	f, err := os.OpenFile(st.path(id), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the session's log: %w", err)
	}
	// After a crash, the last line may be incomplete. Start on a new line.
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			_, _ = f.Write([]byte("\n"))
		}
	}
	return f, nil
}
