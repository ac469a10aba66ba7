package refagent

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// defaultPageSize is the maximum number of sessions in a session/list result.
const defaultPageSize = 10

type sessionInfo struct {
	SessionID string `json:"sessionId"`
	Cwd       string `json:"cwd"`
	Title     string `json:"title,omitempty"`
	UpdatedAt string `json:"updatedAt"`

	key string // key for the order of the list: time of creation, then id
}

// listSessions answers session/list with the stored sessions, the newest first. A cursor contains the key of the last
// session on the previous page. Pages therefore neither repeat nor skip sessions, even if sessions are created or
// deleted meanwhile.
func (a *agent) listSessions(r *request, params json.RawMessage) *rpcError {
	var p struct{ Cwd, Cursor *string }
	if err := decodeParams(params, &p); err != nil {
		return err
	}
	if p.Cwd != nil && !filepath.IsAbs(*p.Cwd) {
		return badParams("cwd has to be an absolute path")
	}
	after, bad := lastOfPage(p.Cursor)
	if bad != nil {
		return bad
	}
	ids, err := a.store.ids()
	if err != nil {
		return fault(codeInternal, "%v", err)
	}
	all := []sessionInfo{}
	for _, id := range ids {
		lines, err := a.store.lines(id)
		if err != nil {
			continue // the session was deleted meanwhile
		}
		rec := newRecord().fold(lines)
		key := rec.created.Format(sortable) + " " + id
		elsewhere := p.Cwd != nil && filepath.Clean(*p.Cwd) != rec.cwd
		shown := after != "" && (key == after || (key > after) != a.habits.OldestFirst)
		if rec.cwd == "" || rec.parent != "" || elsewhere || shown || a.habits.HidesEmpty && len(rec.history) == 0 {
			continue
		}
		all = append(all, sessionInfo{id, rec.cwd, rec.title, rec.updated.Format(time.RFC3339Nano), key})
	}
	slices.SortFunc(all, func(x, y sessionInfo) int { return -cmp.Compare(x.key, y.key) })
	if a.habits.OldestFirst {
		slices.Reverse(all)
	}

	pageSize := cmp.Or(a.habits.PageSize, defaultPageSize)
	result := struct {
		Sessions   []sessionInfo `json:"sessions"`
		NextCursor string        `json:"nextCursor,omitempty"`
	}{Sessions: all}
	if len(all) > pageSize {
		result.Sessions = all[:pageSize]
		result.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(all[pageSize-1].key))
	}
	a.conn.respond(r, result, nil)
	return nil
}

// lastOfPage returns the key in a cursor, or "" if there is no cursor.
func lastOfPage(cursor *string) (key string, err *rpcError) {
	if cursor == nil {
		return "", nil
	}
	raw, failed := base64.RawURLEncoding.DecodeString(*cursor)
	if _, id, ok := strings.Cut(string(raw), " "); failed != nil || !ok || !sessionID().MatchString(id) {
		return "", badParams("unknown cursor")
	}
	return string(raw), nil
}

// sortable is a time format. Texts in this format sort in the order of the times.
const sortable = "2006-01-02T15:04:05.000000000Z"
