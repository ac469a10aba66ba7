package mockclient

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Paths in the initialize result at which agents advertise the optional session methods (ACP v1, AgentCapabilities
// and SessionCapabilities).
const (
	canLoad   = "agentCapabilities.loadSession"
	canResume = "agentCapabilities.sessionCapabilities.resume"
	canList   = "agentCapabilities.sessionCapabilities.list"
	canClose  = "agentCapabilities.sessionCapabilities.close"
	canDelete = "agentCapabilities.sessionCapabilities.delete"
	canLogout = "agentCapabilities.auth.logout"
)

// LoadSession opens an earlier conversation. The agent replays the conversation before it responds. The options must
// be complete, as for a new session.
func (e *Editor) LoadSession(ctx context.Context, id string, o SessionOptions) (*Session, error) {
	return e.open(ctx, "session/load", canLoad, id, o)
}

// ResumeSession opens an earlier conversation without a replay.
func (e *Editor) ResumeSession(ctx context.Context, id string, o SessionOptions) (*Session, error) {
	return e.open(ctx, "session/resume", canResume, id, o)
}

// EnsureSession opens the conversation id by the first method that works: session/load, session/resume, session/new.
// Session.How is that method, and Session.Tried contains the errors of the methods before it. An empty id opens a new
// session.
func (e *Editor) EnsureSession(ctx context.Context, id string, o SessionOptions) (*Session, error) {
	ways := [][2]string{{"session/load", canLoad}, {"session/resume", canResume}, {"session/new", ""}}
	if id == "" {
		ways = ways[2:]
	}
	var tried []error
	for {
		s, err := e.open(ctx, ways[0][0], ways[0][1], id, o)
		if err == nil {
			s.Tried = tried
			return s, nil
		}
		if ways = ways[1:]; len(ways) == 0 || ctx.Err() != nil {
			return nil, err
		}
		tried = append(tried, err)
	}
}

// SessionInfo describes one session in a session/list result.
type SessionInfo struct {
	ID         string
	Cwd        string
	Additional []string
	Title      string
	UpdatedAt  string // ISO 8601, unchanged from the agent
}

// SessionPage is one page of the list of sessions.
type SessionPage struct {
	Sessions []SessionInfo
	// Next is the cursor of the next page, an opaque string; "" if there is
	// none.
	Next     string
	Response transcript.Entry
}

// ListSessions requests one page of the list of sessions. cwd limits the list to the sessions in a directory, given
// by its absolute path; "" lists all sessions. cursor is "" for the first page.
func (e *Editor) ListSessions(ctx context.Context, cwd, cursor string) (*SessionPage, error) {
	if err := e.need("session/list", canList); err != nil {
		return nil, err
	}
	params := map[string]any{}
	if cwd != "" {
		if !filepath.IsAbs(cwd) {
			return nil, fmt.Errorf("session/list: the cwd %q is not absolute", cwd)
		}
		params["cwd"] = cwd
	}
	if cursor != "" {
		params["cursor"] = cursor
	}
	resp, err := e.CallContext(ctx, "session/list", params).Wait(ctx)
	if err != nil {
		return nil, err
	}
	result := resp.JSON().Get("result")
	page := &SessionPage{Next: result.Get("nextCursor").Str(), Response: resp}
	for v := range result.Get("sessions").Items() {
		info := SessionInfo{
			ID: v.Get("sessionId").Str(), Cwd: v.Get("cwd").Str(), Title: v.Get("title").Str(),
			UpdatedAt: v.Get("updatedAt").Str(),
		}
		info.Additional = lists.Collect(v.Get("additionalDirectories").Items(), wire.Value.Str)
		page.Sessions = append(page.Sessions, info)
	}
	return page, nil
}

// AllSessions requests all pages and returns their sessions. It returns an error if the agent returns a cursor twice,
// because the list would never end.
func (e *Editor) AllSessions(ctx context.Context, cwd string) ([]SessionInfo, error) {
	var all []SessionInfo
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, err := e.ListSessions(ctx, cwd, cursor)
		if err != nil {
			return all, err
		}
		all = append(all, page.Sessions...)
		if page.Next == "" {
			return all, nil
		}
		if seen[page.Next] {
			return all, fmt.Errorf("session/list: the cursor %q came twice", page.Next)
		}
		seen[page.Next] = true
		cursor = page.Next
	}
}

// CloseSession closes a session, so that the agent can free its resources. The editor answers the session's open
// permission requests with cancelled.
func (s *Session) CloseSession(ctx context.Context) error {
	return s.e.simple(ctx, "session/close", canClose, map[string]any{"sessionId": s.ID})
}

// DeleteSession removes an earlier conversation from the agent's list.
func (e *Editor) DeleteSession(ctx context.Context, id string) error {
	return e.simple(ctx, "session/delete", canDelete, map[string]any{"sessionId": id})
}

func (e *Editor) simple(ctx context.Context, method, capability string, params map[string]any) error {
	if err := e.need(method, capability); err != nil {
		return err
	}
	_, err := e.CallContext(ctx, method, params).Wait(ctx)
	return err
}

// SetMode switches the session to a mode that the agent offered when the session was opened. It returns an error for
// any other mode.
func (s *Session) SetMode(ctx context.Context, mode string) error {
	if !s.Result().Path("modes.availableModes").Find("id", mode).Exists() {
		return fmt.Errorf("session/set_mode: the session has no mode %q", mode)
	}
	return s.e.simple(ctx, "session/set_mode", "", map[string]any{"sessionId": s.ID, "modeId": mode})
}

// SetConfigOption sets a configuration option of the session. value is a string for a select option, or a bool for a
// boolean option. SetConfigOption returns the complete list of options after the change.
func (s *Session) SetConfigOption(ctx context.Context, id string, value any) (wire.Value, error) {
	params := map[string]any{"sessionId": s.ID, "configId": id, "value": value}
	switch value.(type) {
	case string:
	case bool:
		if !s.e.caps.On("session.configOptions.boolean") {
			return wire.Value{}, errors.New("session/set_config_option: " +
				"this editor does not advertise session.configOptions.boolean")
		}
		params["type"] = "boolean"
	default:
		return wire.Value{}, fmt.Errorf("session/set_config_option: the value of %q is a %T, want string or bool", id, value)
	}
	if err := s.e.need("session/set_config_option", ""); err != nil {
		return wire.Value{}, err
	}
	resp, err := s.e.CallContext(ctx, "session/set_config_option", params).Wait(ctx)
	if err != nil {
		return wire.Value{}, err
	}
	return resp.JSON().Path("result.configOptions"), nil
}
