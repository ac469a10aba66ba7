package language

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
)

// Scenario is a compiled scenario. Its text has no errors.
type Scenario[B any] struct {
	// ID is the scenario's path relative to the root of its collection, with slashes and without extension.
	ID string
	// File is the file name to show to the user.
	File string
	// Title is the first comment line. If the following comment lines begin with a lower-case letter, they continue the
	// title.
	Title string
	// Tags lists the tags from the command tag, and the names of the scenario's folders.
	Tags []string
	// Role is "editor" or, for an agent-side scenario, "agent".
	Role string
	// Agent is the script of an agent-side scenario, else nil.
	Agent *AgentScript
	// Suite is the name of the scenario's shipped suite, or "".
	Suite string

	// Several means that the scenario is for more than one protocol.
	Several bool
	Steps   []Played[B]
	Checks  []*Check
	Prompts []Prompt
	Needs   []Need
	// Workspace maps the paths of the workspace's files, with slashes, to their contents. Want does the same for the
	// expected files; its paths omit want/.
	Workspace, Want map[string][]byte
	// Model is the text of llm.yaml, or nil if the scenario has none.
	Model []byte
	// Alone is the reason why the scenario needs an agent process that no other scenario has used. It is "" if the
	// scenario can share a process.
	Alone string
	// Orphans means that the script checks which processes the agent left running.
	Orphans bool
	// Golden determines how the run is compared with its golden: off, exact, canonical, or "" for the default.
	Golden string
	// Further is the reason why no further turn follows the last line. "" means that one does.
	Further string
	// Timeout is the scenario's own timeout; 0 means the default.
	Timeout time.Duration
	// RulesOff maps the id of a rule that is turned off to the reason.
	RulesOff map[string]string
	// Busy is how the agent treats a prompt during a running turn. "" means that the profile's value applies.
	Busy string

	starts  []*Mistake // lines that start programs; see Starts
	gates   []gate     // the gates that the script awaits or releases
	text    []byte     // the source of a shipped scenario
	modelAt int        // number of the line at which llm.yaml begins
}

// Check is a check that the script declares.
type Check struct {
	Slug, Title  string
	Requirements []string
	Line, Column int
	Class        results.Verdict // 0 means that the requirements determine the class
	// Denies means that a line of the check forbids an entry. Claims means that a line requires something other than the
	// end of a turn.
	Denies, Claims bool

	expected []AgentExpectation // the lines of the check, in an agent-side scenario
}

// Prompt is a prompt that the script sends. Session is "" for the current session.
type Prompt struct {
	Session, Text string
	Line          int
}

// Need is something that the scenario requires of the agent. What is its category, such as agent or tool; Name
// identifies it within the category.
type Need struct {
	What, Name string
	Line       int
}

type gate struct {
	name string
	line int
}

// needsAlone records why the scenario needs an agent process that no other scenario has used. Only the first reason
// is kept.
func (s *Scenario[B]) needsAlone(why string) { s.Alone = cmp.Or(s.Alone, why) }

// Alone records that, because of this line, the scenario needs an agent process that no other scenario has used.
func (l *Line[B]) Alone() {
	l.p.scenario.needsAlone(fmt.Sprintf("line %d: %s", l.Number, l.Name.Raw()))
}

// Comparable reports whether the conversation must be the same in every run. A scenario with golden off may have
// different conversations.
func (s *Scenario[B]) Comparable() bool { return s.Golden != "off" }

// CheckIDs returns the ids of the scenario's checks, in order.
func (s *Scenario[B]) CheckIDs() []string {
	return lists.Map(s.Checks, func(c *Check) string { return s.ID + "#" + c.Slug })
}

// Requirements returns the sorted ids of all requirements of the scenario's checks.
func (s *Scenario[B]) Requirements() []string {
	seen := map[string]bool{}
	for _, c := range s.Checks {
		for _, r := range c.Requirements {
			seen[r] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Parse compiles one scenario. id and file identify it in results and messages. The error joins all mistakes, each a
// *Mistake, in the order of their lines.
func (d *Dialect[B]) Parse(id, file string, text []byte) (*Scenario[B], error) {
	tree, broken := script.Parse(file, text)
	s := &Scenario[B]{ID: id, File: file, Role: "editor",
		Workspace: map[string][]byte{}, Want: map[string][]byte{}, RulesOff: map[string]string{}}
	c := &parser[B]{scenario: s, file: file, commands: d.CommandTable(), kinds: d.kinds(), dialect: d,
		names:    map[string]bool{},
		sessions: map[string]bool{"main": true}} // the first prompt opens the session main
	seen := map[string]bool{}
	for _, f := range tree.Files {
		name, data, err := decoded(f.File)
		m := checkName(name, seen)
		if err != nil {
			m = fmt.Sprintf("%q does not hold base64: %v", f.Name, err)
		}
		if m != "" {
			broken = append(broken, &Mistake{File: file, Line: f.Line - 1, Column: 1, Message: m})
			continue
		}
		seen[name] = true
		switch {
		case name == "llm.yaml":
			s.Model, s.modelAt = data, f.Line
		case strings.HasPrefix(name, "want/"):
			s.Want[strings.TrimPrefix(name, "want/")] = data
		default:
			s.Workspace[name] = data
		}
	}
	if of := protocolsOf(tree); d.Name != "" && !slices.Contains(of, d.Name) {
		return nil, &Mistake{File: file, Message: fmt.Sprintf("the scenario is for %s, not for %s", strings.Join(of, " and "),
			d.Name), Hint: "--protocol " + of[0]}
	}
	if tree.ScriptsAgent() {
		s.Role = "agent"
		c.agentScript(tree.Lines)
	} else {
		s.Steps = c.block(tree.Lines)
	}
	for _, place := range []string{"$HOME", "$TMP"} {
		if bytes.Contains(text, []byte(place)) {
			s.needsAlone(place + ", which is the process's")
		}
	}
	broken = append(c.mistakes, broken...)
	if len(broken) > 0 && s.Model != nil {
		// Report a mistake in llm.yaml together with those of the script.
		_, err := fakellm.ParseScript(file, s.Model, anyVariable)
		var m *Mistake
		if errors.As(s.ModelMistake(err), &m) {
			broken = append(broken, m)
		}
	}
	if err := together(broken); err != nil {
		return nil, err
	}
	if folder := path.Dir(id); folder != "." {
		s.Tags = append(s.Tags, strings.Split(folder, "/")...)
	}
	return s, nil
}

// together joins mistakes in the order of their lines. It keeps only the first mistake of each line, because later
// ones are usually consequences of it.
func together(list []*Mistake) error {
	slices.SortStableFunc(list, func(a, b *Mistake) int { return a.Line - b.Line })
	list = slices.CompactFunc(list, func(a, b *Mistake) bool { return a.Line == b.Line })
	return errors.Join(lists.Map(list, func(m *Mistake) error { return m })...)
}

// decoded returns the name and content that an archive's file has in the workspace. A binary file is in the archive
// as text, under the name NAME.base64.
func decoded(f txtar.File) (name string, data []byte, err error) {
	name, ok := strings.CutSuffix(f.Name, ".base64")
	if !ok {
		return f.Name, f.Data, nil
	}
	data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(f.Data)), ""))
	return name, data, err
}

func checkName(name string, seen map[string]bool) string {
	switch {
	case seen[name]:
		return fmt.Sprintf("the archive holds %q twice", name)
	case !fs.ValidPath(name):
		return fmt.Sprintf("%q is not a path inside the workspace", name)
	}
	return ""
}

// Bindings lists the ways to connect to an agent that a scenario can require.
var Bindings = []string{"stdio", "http", "ws"}

// Elsewhere returns the binding that the scenario requires, such as ws, if it differs from the given binding.
// Otherwise it returns "".
func (s *Scenario[B]) Elsewhere(binding string) string {
	return lists.First(s.Needs, func(n Need) bool { return slices.Contains(Bindings, n.What) && n.What != binding }).What
}

// Source returns the text of a scenario. A shipped scenario is embedded in the binary; any other is read from its
// file.
func (s *Scenario[B]) Source() ([]byte, error) {
	if s.Suite != "" {
		return s.text, nil
	}
	return os.ReadFile(s.File)
}

// Archived returns the content of a file in the archive. name is the name in the archive, with want/ for an expected
// file.
func (s *Scenario[B]) Archived(name string) ([]byte, bool) {
	if rest, ok := strings.CutPrefix(name, "want/"); ok {
		data, ok := s.Want[rest]
		return data, ok
	}
	data, ok := s.Workspace[name]
	return data, ok
}
