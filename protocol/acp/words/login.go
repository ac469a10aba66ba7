package words

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// barred says that the agent wants a login, which the script does not know: it
// offered methods and refused a request with -32000, and none of them was tried.
func barred(t *transcript.Transcript) string {
	refused := ""
	var offered []string
	for e := range t.All() {
		switch {
		case e.Source == transcript.Editor && e.Kind == transcript.Request && e.Method == "authenticate":
			return ""
		case e.Source != transcript.Agent || e.Kind != transcript.Response:
		case e.Method == "initialize":
			offered = nil
			for m := range e.JSON().Path("result.authMethods").Items() {
				offered = append(offered, m.Get("id").Text())
			}
		case refused == "" && len(offered) > 0 && authRequired(e.JSON()):
			refused = fmt.Sprintf("the agent wants a login before %s (#%d): %q; it offers %s", e.Method, e.Seq,
				e.JSON().Path("error.message").Str(), strings.Join(offered, ", "))
		}
	}
	return refused
}

// loggedIn reports whether a login has succeeded on the connection of the last entry
// and no logout has followed.
func loggedIn(t *transcript.Transcript) (in bool) {
	conn := -1
	for e := range t.All() {
		if e.Conn != conn {
			conn, in = e.Conn, false
		}
		if e.Source == transcript.Agent && e.Kind == transcript.Response && e.JSON().Get("result").Exists() {
			in = in && e.Method != "logout" || e.Method == "authenticate"
		}
	}
	return in
}

func authRequired(v wire.Value) bool {
	code, ok := v.Path("error.code").Int()
	return ok && code == -32000
}
