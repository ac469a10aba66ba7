package mockclient

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// AuthMethod is a login method that the agent offers.
type AuthMethod struct {
	ID, Name, Description string
	// Terminal is true if the client logs in by running the agent's program in a terminal, with Args appended and Env
	// set.
	Terminal bool
	Args     []string
	Env      map[string]string
}

// AuthMethods returns the login methods that the agent offers in its initialize response. For a method of an unknown
// type, Terminal is false, because the agent handles such a method itself.
func (i *AgentInfo) AuthMethods() []AuthMethod {
	var methods []AuthMethod
	for v := range i.Result().Get("authMethods").Items() {
		if v.Get("id").Kind() != wire.String {
			continue
		}
		m := AuthMethod{
			ID: v.Get("id").Str(), Name: v.Get("name").Str(), Description: v.Get("description").Str(),
			Terminal: v.Get("type").Is("terminal"),
		}
		if m.Terminal {
			m.Args = lists.Collect(v.Get("args").Items(), wire.Value.Str)
			for name, value := range v.Get("env").Members() {
				if m.Env == nil {
					m.Env = map[string]string{}
				}
				m.Env[name] = value.Str()
			}
		}
		methods = append(methods, m)
	}
	return methods
}

func (i *AgentInfo) authMethod(id string) (AuthMethod, error) {
	methods := i.AuthMethods()
	at := slices.IndexFunc(methods, func(m AuthMethod) bool { return m.ID == id })
	if at < 0 {
		return AuthMethod{}, fmt.Errorf("the agent offered no authentication method %q", id)
	}
	return methods[at], nil
}

// Authenticate logs in by a method that the agent offers and handles itself. It returns an error for a terminal
// method; see TerminalLogin.
func (e *Editor) Authenticate(ctx context.Context, method string) error {
	if err := e.need("authenticate", ""); err != nil {
		return err
	}
	m, err := e.Info().authMethod(method)
	if err != nil {
		return fmt.Errorf("authenticate: %w", err)
	}
	if m.Terminal {
		return fmt.Errorf("authenticate: method %q is a terminal login, see TerminalLogin", method)
	}
	return e.simple(ctx, "authenticate", "", map[string]any{"methodId": method})
}

// Logout sends a logout request and waits for the response.
func (e *Editor) Logout(ctx context.Context) error {
	return e.simple(ctx, "logout", canLogout, map[string]any{})
}

// TerminalLogin runs the login program of a terminal method and waits for its end. It runs the agent's command with
// the method's arguments appended and its environment set (ACP v1, Authentication). Afterwards, the caller must start
// and initialize the agent again. The program's standard files are pipes and not a terminal, so a login that asks
// questions cannot succeed.
func TerminalLogin(ctx context.Context, c Command, info *AgentInfo, method string) (Exit, error) {
	m, err := info.authMethod(method)
	if err == nil && !m.Terminal {
		err = fmt.Errorf("method %q is not a terminal login", method)
	}
	if err != nil {
		return Exit{}, fmt.Errorf("logging in: %w", err)
	}
	c.Args = append(slices.Clone(c.Args), m.Args...)
	for name, value := range m.Env {
		c.Env = append(slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool {
			return strings.HasPrefix(kv, name+"=")
		}), name+"="+value)
	}
	c.RemoveOnExit = ""
	t, err := transcript.New(transcript.Header{Scenario: "login"}, transcript.Options{Classifier: acpframe.Classifier{}})
	if err != nil {
		return Exit{}, fmt.Errorf("logging in: %w", err)
	}
	defer t.Close()
	a, err := Start(ctx, t, 0, c)
	if err != nil {
		return Exit{}, fmt.Errorf("logging in: %w", err)
	}
	select {
	case <-a.Exited():
	case <-ctx.Done():
	}
	exit := a.Stop(ctx).Exit
	if err := context.Cause(ctx); err != nil {
		return exit, fmt.Errorf("logging in: %w", err)
	}
	if exit != (Exit{}) {
		how := strings.TrimSpace(fmt.Sprintf("%d %s", exit.Code, exit.Signal))
		return exit, fmt.Errorf("logging in: the program ended with %s", how)
	}
	return exit, nil
}
