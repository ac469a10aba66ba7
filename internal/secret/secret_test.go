package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/acp-test/acp-test/internal/secret"
)

// keys have what each form has to escape.
var keys = []string{"hunter2hunter2", `pl4nt3d/S3cr3t+key"zq81?x`, "p\\a<s>&s=wörd %41", "sixsix",
	"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}

// written are the ways in which a program may write a key.
func written(key string) map[string]string {
	quoted, _ := json.Marshal(key)
	twice, _ := json.Marshal(string(quoted))
	all := map[string]string{
		"plain": key, "json": string(quoted), "json in json": string(twice), "query": url.QueryEscape(key),
		"path": url.PathEscape(key), "lower query": strings.ToLower(url.QueryEscape(strings.ToLower(key))),
		"hex": hex.EncodeToString([]byte(key)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(key))),
	}
	if strings.ToLower(key) != key {
		delete(all, "lower query")
	}
	if len(key) >= 8 {
		for n := range 4 {
			text := []byte(strings.Repeat("u", n) + key + strings.Repeat("v", n))
			all[fmt.Sprint("base64 ", n)] = base64.StdEncoding.EncodeToString(text)
			all[fmt.Sprint("base64url ", n)] = base64.RawURLEncoding.EncodeToString(text)
		}
	}
	return all
}

// A known secret is found in all forms, and what stands around it stays.
func TestForms(t *testing.T) {
	n := 0
	for _, key := range keys {
		f := secret.New("SOME_API_KEY="+key, "HOME=/home/me", "EDITOR=vi-or-emacs", "KEY_FILE=/etc/key",
			"A_TOKEN=short")
		for name, form := range written(key) {
			n++
			if got := f.Text("before " + form + " after"); strings.Contains(got, form) ||
				!strings.Contains(got, secret.Mark) ||
				!strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Errorf("%s of %q: %q", name, key, got)
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d forms", n)
	}
}

// A name beside a value says that it is secret.
func TestNamed(t *testing.T) {
	f := secret.New()
	for text, want := range map[string]string{
		`tool --password hunter2 --verbose`:                           `tool --password REDACTED --verbose`,
		`["tool","--api-key","hunter2","-v"]`:                         `["tool","--api-key","REDACTED","-v"]`,
		`tool --token=hunter2`:                                        `tool --token=REDACTED`,
		`https://me:hunter2@host/x`:                                   `https://me:REDACTED@host/x`,
		`GET /x?a=1&api_key=hunter2&b=2`:                              `GET /x?a=1&api_key=REDACTED&b=2`,
		`{"name":"X-Api-Key","value":"hunter2"}`:                      `{"name":"X-Api-Key","value":"REDACTED"}`,
		`{"value":"hunter2", "name":"GH_TOKEN"}`:                      `{"value":"REDACTED", "name":"GH_TOKEN"}`,
		`Authorization: Bearer abcdefghijkl`:                          `Authorization: Bearer REDACTED`,
		`sk-abcdefghijklmnopqrstu and ghp_` + strings.Repeat("a", 36): `REDACTED and REDACTED`,
		`--keyboard us --tokens 12 http://host:8080/a?b=c`: `--keyboard us --tokens 12 ` +
			`http://host:8080/a?b=c`,
		`{"name":"PATH","value":"/bin"}`: `{"name":"PATH","value":"/bin"}`,
	} {
		if got := f.Text(text); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", text, got, want)
		}
	}
}

// Running text says what is a secret; what it says of secrets, code and amounts stay.
func TestAssigned(t *testing.T) {
	f := secret.New()
	for text, want := range map[string]string{
		`my password is x9dragon, and fine`:          `my password is REDACTED, and fine`,
		`My password is x9dragon.`:                   `My password is REDACTED.`,
		`the API key was "Kq81xxZ"`:                  `the API key was "REDACTED"`,
		`password: dragons`:                          `password: REDACTED`,
		`{"api_key": "dragons", oops`:                `{"api_key": "REDACTED", oops`,
		`"{\"secret\": \"dragons\"}"`:                `"{\"secret\": \"REDACTED\"}"`,
		`rawInput={apiKey: "dragons", a: 1}`:         `rawInput={apiKey: "REDACTED", a: 1}`,
		`{name: "X-Api-Key", value: "dragons"}`:      `{name: "X-Api-Key", value: "REDACTED"}`,
		"SERVICE_KEY=dragons\nX_AUTH=dragons\nkey=a": "SERVICE_KEY=REDACTED\nX_AUTH=REDACTED\nkey=a",
		`/x/passwd=dragons`:                          `/x/passwd=REDACTED`,
		`the API key: drag0ns{"a": 1}`:               `the API key: REDACTED{"a": 1}`,
	} {
		if got := f.Text(text); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", text, got, want)
		}
	}
	for _, text := range []string{
		`the token is invalid, and the password is required`, `password: required`, `max_token: 100000`,
		`tokens: 123456`,
		`const token = getToken();`, `{apiKey: process.env.KEY}`, `{apiKey: apiKey}`, `--env API_KEY=$KEY_OF_RUN`,
		`key: value-1`, `monkey: dragons`, `the secret of success is practice`, `token_file: /run/tokens/1`,
		`keyboard = dragons1`,
		`token = config["name"]`, `token: Option<Secret>`, `api_key: ${KEY_2}`, `password={{value1}}`,
	} {
		if got := f.Text(text); got != text {
			t.Errorf("%s\nbecomes %s", text, got)
		}
	}
}

// A copy without secrets keeps what no file holds, and the words of the tool.
func TestValueKeeps(t *testing.T) {
	type inner struct {
		ID      string `json:"id"`
		Reason  string `json:"reason"`
		Private []int  `json:"-"`
		More    *inner `json:"more"`
		Any     any    `json:"any"`
		began   time.Time
	}
	now := time.Now()
	v := inner{"auth/required", "is required", []int{1}, &inner{Reason: "required"}, []any{"required", 1}, now}
	got := secret.Value(secret.New("A_TOKEN=required"), v)
	if got.ID != v.ID || got.Reason != "is REDACTED" || got.Private[0] != 1 || got.More.Reason != "REDACTED" ||
		fmt.Sprint(got.Any) != "[REDACTED 1]" || got.began != now || v.More.Reason != "required" {
		t.Errorf("%+v of %+v", got, v)
	}
}

// Results are cleaned in all their texts, and are whole afterwards.
func TestValue(t *testing.T) {
	type inner struct {
		A string
		M map[string][]string
	}
	key := keys[1]
	f := secret.New("X_SECRET=" + key)
	got := secret.Value(f, inner{"a " + key, map[string][]string{key: {"b" + key + "c"}}})
	if text := fmt.Sprint(got); strings.Contains(text, key) || got.A != "a REDACTED" ||
		got.M["REDACTED"][0] != "bREDACTEDc" {
		t.Errorf("%q", text)
	}
}

// The end of a piece that begins a secret is found.
func TestBegun(t *testing.T) {
	f := secret.New("X_SECRET=hunter2hunter2")
	for text, want := range map[string]int{"a hunt": 4, "a hun": 0, "a hunter2hunter": 13, "none": 0} {
		if n, rest := f.Begun([]byte(text)); n != want || n > 0 && text[len(text)-n:]+rest != "hunter2hunter2" {
			t.Errorf("%q: %d, %q", text, n, rest)
		}
	}
}

// A secret that is written in pieces is masked in each of them, from its fourth byte on.
func TestWriter(t *testing.T) {
	f := secret.New("OWN_API_KEY=hunter2hunter2")
	var out strings.Builder
	w := f.Writer(&out)
	for _, piece := range []string{"it is hunt", "er2hun", "ter2 indeed; ", "hunter3 and hunter2hunter2."} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := out.String(); got != "it is "+secret.Mark+secret.Mark+secret.Mark+" indeed; hunter3 and "+secret.Mark+
		"." {
		t.Errorf("%q", got)
	}
}
