package scenarios

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/script"
)

// Scenario is one scenario, read and compiled: all that can be wrong with its
// text is known.
type Scenario struct {
	// ID is the path without extension, relative to the root of its
	// collection, with slashes.
	ID string
	// File is the name to show to the user.
	File string
	// Title is the first comment line.
	Title string
	// Tags are those given with tag, and the folder's name.
	Tags []string
	// Role is "editor", or "agent" for a scenario that scripts the agent.
	Role string
	// Agent is the script of a scenario with the role agent; else nil.
	Agent *AgentScript
	// Suite is the name of the shipped suite it belongs to, or "".
	Suite string

	text    []byte // of a shipped one
	several bool   // it is about several protocols
	steps   []step
	checks  []*checkDecl
	prompts []promptDecl
	needs   []needDecl
	gates   []gateUse         // those the script awaits or releases
	files   map[string][]byte // the workspace
	want    map[string][]byte // expected files, without want/
	model   []byte            // llm.yaml
	alone   string            // why it needs a process that no other used, "" if it does not
	orphans bool              // the script asks which processes are left
	modelAt int               // line of the scenario where llm.yaml begins
	decl    declarations
}

// declarations are what set-up lines outside the order of the script say.
type declarations struct {
	golden   string // "", off, exact, canonical
	further  string // why no further turn follows; "": one does
	timeout  time.Duration
	rulesOff map[string]string
	busy     string // what a prompt in a busy session meets, in place of what the profile says
}

type checkDecl struct {
	slug         string
	requirements []string
	title        string
	line, column int
	class        results.Verdict    // "": by the requirements
	expected     []AgentExpectation // of the editor, where the file scripts the agent
	// denies and claims: it has lines that say what must not be, and what must, but for
	// the ends of turns.
	denies, claims bool
}

type promptDecl struct {
	session string
	text    string
	line    int
}

type gateUse struct {
	name string
	line int
}

type needDecl struct {
	what, name string // agent:CAP, model, tool:NAME
	line       int
}

// needsAlone says why the scenario cannot run in a process that others used.
func (s *Scenario) needsAlone(why string) { s.alone = cmp.Or(s.alone, why) }

// Alone says that the scenario needs a process of the agent that no other used, for what
// this line does.
func (l *Line) Alone() { l.p.scenario.needsAlone(fmt.Sprintf("line %d: %s", l.Number, l.Name.Raw())) }

// HasModel reports whether the scenario scripts the model.
func (s *Scenario) HasModel() bool { return s.model != nil }

// Comparable reports whether two runs of the scenario say the same: not if it
// turns its golden off, because an agent may do this or that.
func (s *Scenario) Comparable() bool { return s.decl.golden != "off" }

// Checks returns the ids of the scenario's checks, in order.
func (s *Scenario) Checks() []string {
	var ids []string
	for _, c := range s.checks {
		ids = append(ids, s.ID+"#"+c.slug)
	}
	return ids
}

// Requirements returns the ids of all requirements its checks name.
func (s *Scenario) Requirements() []string {
	seen := map[string]bool{}
	for _, c := range s.checks {
		for _, r := range c.requirements {
			seen[r] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Parse reads one scenario. id and file name it in results and messages. The
// error joins all its mistakes, each a *Mistake, in the order of their lines.
func (p *Protocol) Parse(id, file string, text []byte) (*Scenario, error) {
	tree, broken := script.Parse(file, text)
	s := &Scenario{ID: id, File: file, Role: "editor",
		files: map[string][]byte{}, want: map[string][]byte{}, decl: declarations{rulesOff: map[string]string{}}}
	c := &parser{scenario: s, file: file, commands: p.CommandTable(), kinds: p.kinds(), protocol: p,
		names:    map[string]bool{},
		sessions: map[string]bool{"main": true}} // main is what a prompt opens by itself
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
			s.model, s.modelAt = data, f.Line
		case strings.HasPrefix(name, "want/"):
			s.want[strings.TrimPrefix(name, "want/")] = data
		default:
			s.files[name] = data
		}
	}
	if of := protocolsOf(tree); p.Name != "" && !slices.Contains(of, p.Name) {
		return nil, &Mistake{File: file, Message: fmt.Sprintf("the scenario is for %s, not for %s", strings.Join(of, " and "),
			p.Name), Hint: "--protocol " + of[0]}
	}
	if tree.ScriptsAgent() {
		s.Role = "agent"
		c.agentScript(tree.Lines)
	} else {
		s.steps = c.block(tree.Lines)
	}
	for _, place := range []string{"$HOME", "$TMP"} {
		if bytes.Contains(text, []byte(place)) {
			s.needsAlone(place + ", which is the process's")
		}
	}
	broken = append(c.mistakes, broken...)
	if len(broken) > 0 && s.model != nil {
		// Else whoever mends the script meets this one next.
		_, err := fakellm.ParseScript(file, s.model, anyVariable)
		var m *Mistake
		if errors.As(s.modelMistake(err), &m) {
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

// together joins mistakes in the order of their lines. Of those of one line only
// the first one counts: the others follow from it.
func together(list []*Mistake) error {
	slices.SortStableFunc(list, func(a, b *Mistake) int { return a.Line - b.Line })
	list = slices.CompactFunc(list, func(a, b *Mistake) bool { return a.Line == b.Line })
	var errs []error
	for _, m := range list {
		errs = append(errs, m)
	}
	return errors.Join(errs...)
}

// decoded is a file of an archive under the name it has in the workspace: an
// archive is text, so a picture stands in it as NAME.base64.
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
		return fmt.Sprintf("%q is no path inside the workspace", name)
	}
	return ""
}
