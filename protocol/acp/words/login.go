package words

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// login logs in with the method that the profile names, at most once per connection. It does nothing if the profile
// names no method, or if the script has already logged in.
func login(ctx context.Context, b *scenarios.Branch, l *scenarios.Line) error {
	method, c, asked := b.Login(), of(b), true
	c.change(func() { asked, c.asked = c.asked, true })
	if method == "" || asked {
		return nil
	}
	var offered []string
	c.change(func() { offered = methods(c.greeting) })
	if !slices.Contains(offered, method) {
		return fmt.Errorf("the agent offers no login method %q (it offers %s); choose one with --auth-method, or with "+
			"auth: in its profile", method, cmp.Or(strings.Join(offered, ", "), "none"))
	}
	_, err := call(ctx, b, l, nil, c.method("authenticate"), map[string]any{"methodId": method}, true)
	if miss, ok := errors.AsType[*scenarios.Miss](err); ok {
		miss.Verdict = results.Inconclusive // the login failed, so the scenario's subject was not tested
	}
	return err
}

// methods returns the ids of the agent's login methods.
func methods(greeting wire.Value) (ids []string) {
	for m := range greeting.Get("authMethods").Items() {
		id := m.Get("methodId") // of version 2
		if !id.Exists() {
			id = m.Get("id")
		}
		ids = append(ids, id.Text())
	}
	return ids
}

// handOver tells the user how to give an agent its credentials, because HOME is empty in a run.
const handOver = "give it a key with --env NAME='$KEY' or --pass-env NAME, or copy its login files into the run's " +
	"empty HOME with home: in a profile (see docs/profiles.md)"

// loginAdvice tells the user what to do if the agent requires a login.
func (c *client) loginAdvice() (advice string) {
	var offered []string
	c.change(func() { offered = methods(c.greeting) })
	if len(offered) == 0 {
		return "the agent asks for authentication but offers no login method: " + handOver
	}
	return "the agent asks for authentication: give it a key with --env NAME='$KEY' or --pass-env, or log in with " +
		"--auth-method; it offers " + strings.Join(offered, ", ")
}

// aboutLogin matches error messages in which an agent asks for a login.
var aboutLogin = lazy.Regexp(`(?i)\b(auth|log(ged)?[ -]?in\b|sign(ed)?[ -]?in\b|credential|api[ -_]?key)`)

// barred explains that the agent refused a request because no login took place. It returns "" if there was no such
// refusal or if the script tried to log in. There are two kinds of refusal: the agent offers login methods and answers
// with -32000, or it offers none, refuses the first session and mentions a login in its error message.
func barred(t *transcript.Transcript) string {
	refused, opened := "", false
	var offered []string
	for e := range t.All() {
		switch {
		case e.Source == transcript.Editor && e.Kind == transcript.Request && logsIn(e.Method),
			e.Kind == transcript.Act && strings.HasPrefix(e.JSON().Get("text").Str(), "login "):
			return ""
		case e.Source != transcript.Agent || e.Kind != transcript.Response:
		case e.Method == "initialize":
			offered = methods(e.JSON().Get("result"))
		case !authRequired(e.JSON()):
			opened = opened || e.Method == "session/new" && e.JSON().Get("result").Exists()
		case refused == "" && len(offered) > 0:
			refused = fmt.Sprintf("the agent requires a login before %s (#%d): %q; it offers %s; use --auth-method",
				e.Method, e.Seq, e.JSON().Path("error.message").Str(), strings.Join(offered, ", "))
		case refused == "" && !opened && e.Method == "session/new" && aboutLogin().Match(e.JSON().Get("error").Raw()):
			refused = fmt.Sprintf("the agent requires a login before %s (#%d): %q; it offers no login method: %s",
				e.Method, e.Seq, e.JSON().Path("error.message").Str(), handOver)
		}
	}
	return refused
}

// loggedIn reports whether the last connection is logged in: a login has succeeded, and no logout has succeeded since.
func loggedIn(t *transcript.Transcript) (in bool) {
	conn := -1
	for e := range t.All() {
		if e.Conn != conn {
			conn, in = e.Conn, false
		}
		if e.Source == transcript.Agent && e.Kind == transcript.Response && e.JSON().Get("result").Exists() {
			in = in && e.Method != "logout" && e.Method != "auth/logout" || logsIn(e.Method)
		}
	}
	return in
}

func authRequired(v wire.Value) bool {
	code, ok := v.Path("error.code").Int()
	return ok && code == -32000
}

// logsIn reports whether a method is the login method of version 1 or 2.
func logsIn(method string) bool { return method == "authenticate" || method == "auth/login" }
