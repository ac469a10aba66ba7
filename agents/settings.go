package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/jsonc"

	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/wire"
)

// Settings reads the `agent_servers` of an editor's settings.json, comments and
// trailing commas allowed, as profiles sorted by name. Credentials among their
// environment are replaced by dummies and the model's address by the model
// server's. Entries that name no command, such as those an editor installs by
// itself, are left out and listed in skipped, each with the reason.
func Settings(file string) (profiles []*Profile, skipped []string, err error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("reading editor settings %s: %w", file, cause(err))
	}
	return ParseSettings(file, src)
}

// server is an entry of agent_servers; path and an object under command are
// older spellings.
type server struct {
	Type    string            `json:"type"`
	Command json.RawMessage   `json:"command"`
	Path    string            `json:"path"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// ParseSettings is Settings of a text that was read already; name stands in
// messages.
func ParseSettings(name string, src []byte) (profiles []*Profile, skipped []string, err error) {
	var doc struct {
		Servers map[string]server `json:"agent_servers"`
	}
	text := jsonc.ToJSON(src) // keeps every offset
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, nil, settingsMistake(name, text, err)
	}
	for _, key := range slices.Sorted(maps.Keys(doc.Servers)) {
		s := doc.Servers[key]
		if s.Env == nil { // argv adds what an older form keeps elsewhere
			s.Env = map[string]string{}
		}
		argv, err := s.argv()
		switch {
		case err != nil:
			at, _ := wire.Parse(text)
			m := placed(name, text, at.Get("agent_servers").Get(key).Get("command").Offset())
			m.Message = fmt.Sprintf("agent_servers.%s: %v", key, err)
			return nil, nil, m
		case len(argv) == 0 && s.Type != "" && s.Type != "custom":
			skipped = append(skipped,
				fmt.Sprintf("%s: the editor installs it itself (type %q) and names no command", key, s.Type))
			continue
		case len(argv) == 0:
			if err := noCommand(settings{name, text}, key); err != nil {
				return nil, nil, err
			}
			skipped = append(skipped, fmt.Sprintf("%s: it has no command", key))
			continue
		}
		p := AdHoc(argv)
		p.Name, p.Title, p.Source = clean(key), key, name
		p.Env = anyModel()
		for k, v := range s.Env {
			if _, ours := p.Env[k]; ours {
				continue
			}
			if Secret(k) {
				v = dummyKey
			}
			p.Env[k] = strings.ReplaceAll(v, "$", "$$") // an editor expands nothing
		}
		profiles = append(profiles, p)
	}
	return profiles, skipped, nil
}

// noCommand is the mistake that keeps an agent from having a command; nil if there is none.
func noCommand(s settings, agent string) (err error) {
	defer mistake.Catch(&err)
	doc, err := wire.Parse(s.text)
	if err == nil {
		s.misspelt(doc.Get("agent_servers").Get(agent), "agent_servers."+agent)
	}
	return err
}

func (s server) argv() ([]string, error) {
	program, args := s.Path, s.Args
	if raw := bytes.TrimSpace(s.Command); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		var old server
		switch {
		case json.Unmarshal(raw, &program) == nil:
		case json.Unmarshal(raw, &old) == nil && old.Path != "":
			program, args = old.Path, append(old.Args, s.Args...)
			maps.Copy(s.Env, old.Env)
		default:
			return nil, fmt.Errorf("command must be a text, not %s", raw)
		}
	}
	if program == "" {
		return nil, nil
	}
	return append([]string{program}, args...), nil
}

// settingsMistake gives an error of encoding/json its place.
func settingsMistake(name string, text []byte, err error) error {
	offset := int64(-1)
	var msg string
	switch e := err.(type) {
	case *json.SyntaxError:
		offset, msg = e.Offset, e.Error()
	case *json.UnmarshalTypeError:
		offset, msg = e.Offset, fmt.Sprintf("%s must be %s, not a %s", e.Field, jsonType(e.Type.String()), e.Value)
	}
	if offset < 0 || offset > int64(len(text)) {
		return fmt.Errorf("reading editor settings %s: %w", name, err)
	}
	m := placed(name, text, int(max(0, offset-1)))
	m.Message = msg
	return m
}

func jsonType(goType string) string {
	switch {
	case goType == "string":
		return "a text"
	case strings.HasPrefix(goType, "[]"):
		return "a list of texts"
	}
	return "an object"
}

var secret = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|PRIVATE|SIGNATURE|` +
	`_PAT$|BEARER|DSN)`)

// Secret reports whether a variable's name looks like that of a credential.
func Secret(name string) bool { return secret.MatchString(name) }
