package agents

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

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
	profiles, skipped, err = ParseSettings(file, src)
	slices.SortFunc(profiles, func(a, b *Profile) int { return strings.Compare(a.Title, b.Title) })
	slices.Sort(skipped)
	return profiles, skipped, err
}

// ParseSettings reads a text as Settings reads a file, in the order of the text; name stands in
// messages.
func ParseSettings(name string, src []byte) (profiles []*Profile, skipped []string, err error) {
	defer mistake.Catch(&err)
	s, doc := readSettings(name, src)
	for key, v := range s.object(doc.Get("agent_servers"), "agent_servers") {
		where := "agent_servers." + key
		if v.Kind() != wire.Object {
			s.fail(v, "%s must be an object", where)
		}
		argv, env := s.program(v, where)
		switch kind := s.one(v.Get("type"), where+".type"); {
		case argv[0] != "":
			profiles = append(profiles, ofSettings(name, key, argv, env))
		case kind != "" && kind != "custom":
			skipped = append(skipped,
				fmt.Sprintf("%s: the editor installs it itself (type %q) and names no command", key, kind))
		default:
			s.misspelt(v, where)
			skipped = append(skipped, fmt.Sprintf("%s: it has no command", key))
		}
	}
	return profiles, skipped, nil
}

// ofSettings is the profile of an agent that an editor's settings name.
func ofSettings(file, key string, argv []string, env [][2]string) *Profile {
	p := AdHoc(argv)
	p.Name, p.Title, p.Source, p.Own = clean(key), key, file, map[string]string{}
	for _, pair := range env {
		k, v := pair[0], pair[1]
		p.Own[k] = v
		if _, ours := anyModel()[k]; ours {
			continue
		}
		if Secret(k) {
			v = dummyKey
		}
		p.Env[k] = strings.ReplaceAll(v, "$", "$$") // an editor expands nothing
	}
	return p
}

var secret = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|PRIVATE|SIGNATURE|` +
	`_PAT$|BEARER|DSN)`)

// Secret reports whether a variable's name looks like that of a credential.
func Secret(name string) bool { return secret.MatchString(name) }
