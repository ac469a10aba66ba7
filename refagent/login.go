package refagent

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The ids of the authentication methods that EnvAuth enables.
const (
	agentMethod    = "agent"
	keyMethod      = "key"
	terminalMethod = "terminal"
)

// LogIn asks for a key on o.Out, reads it from o.In, and stores it in the state directory. Without a key it returns an
// error.
func LogIn(o Options) error {
	fmt.Fprint(o.Out, "Key: ")
	key, _ := bufio.NewReader(o.In).ReadString('\n') // the last line may have no end
	err := errors.New("logging in: no key was given")
	if key = strings.TrimSpace(key); key != "" {
		dir := cmp.Or(o.StateDir, defaultStateDir(o.Getenv))
		if err = os.MkdirAll(dir, 0o700); err == nil {
			err = os.WriteFile(filepath.Join(dir, keyFile), []byte(key), 0o600)
		}
	}
	if o.Hooks.LoggedIn != nil {
		err = o.Hooks.LoggedIn(err)
	}
	return err
}

// keyFile is the name of the file in the state directory that has the key.
const keyFile = "key"

// locked reports whether sessions are refused because no login took place. The caller holds a.mu.
func (a *agent) locked() bool {
	switch how := a.options.Getenv(EnvAuth); {
	case how == agentMethod, how == keyMethod, a.habits.LoginFirst:
		return !a.authenticated
	case how == terminalMethod && a.client.TerminalLogin:
		_, err := os.Stat(filepath.Join(filepath.Dir(a.store.dir), keyFile))
		return err != nil
	}
	return false
}

// logins returns the ids of the authentication methods that the agent offers.
func (a *agent) logins() []string {
	how := a.options.Getenv(EnvAuth)
	if len(a.habits.Logins) == 0 && (how == agentMethod || how == keyMethod) {
		return []string{how}
	}
	return a.habits.Logins
}

func (a *agent) authenticate(r *request, params json.RawMessage) *rpcError {
	var p struct{ MethodID string }
	if err := decodeParams(params, &p); err != nil {
		return err
	}
	if !slices.Contains(a.logins(), p.MethodID) {
		return badParams("unknown authentication method %q", p.MethodID)
	}
	return a.logged(r, true)
}

// logged records and answers a login (in is true) or a logout (in is false).
func (a *agent) logged(r *request, in bool) *rpcError {
	a.mu.Lock()
	a.authenticated = in
	a.mu.Unlock()
	a.conn.respond(r, nil, nil)
	return nil
}
