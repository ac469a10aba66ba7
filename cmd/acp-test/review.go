package main

import (
	"bufio"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

func reviewCommand(h *host) *cobra.Command {
	var accept []string
	var dir string
	c := command("review", atMost(1), func(c *cobra.Command, args []string) error {
		run := "acp-test-out"
		def, err := findConfig(h.cwd)
		if err != nil {
			return err
		}
		if def.Out != "" {
			run = def.Out
		}
		if len(args) > 0 {
			run = args[0]
		}
		if !c.Flags().Changed("golden") && def.Goldens != "" {
			dir = def.Goldens
		}
		return h.review(run, dir, accept)
	})
	c.Flags().StringArrayVar(&accept, "accept", nil,
		"accept the goldens of scenarios whose id matches `GLOB` (* and ?), without asking (repeatable)")
	c.Flags().StringVar(&dir, "golden", "golden", "the folder of goldens, `DIR`")
	return c
}

// change is a golden that differs from the text of a run.
type change struct {
	id     string
	state  string // new, changed or gone
	text   string // text of the run; "" if the scenario no longer applies
	pieces []golden.Piece
}

// cause returns the changed words without their position. Similar changes have the same cause.
func (c change) cause() string {
	var b strings.Builder
	for _, p := range c.pieces {
		if p.Op != ' ' {
			b.WriteString(string(p.Op) + p.Text + "\n")
		}
	}
	return c.state + b.String()
}

// Decisions about a change.
const (
	open     = 0
	accepted = 'a'
	rejected = 'r'
	skipped  = 's'
)

func (h *host) review(name, dir string, accept []string) error {
	run, err := readResults(name)
	if err != nil {
		return fmt.Errorf("review: %w; acp-test run writes it", err)
	}
	store := golden.Store{Dir: h.absolute(dir)}
	changes, left, err := changesOf(run, store)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		h.say("not reviewed, because something else failed in them: %s\n", strings.Join(left, ", "))
	}
	of, decided := goldensOf(run), make([]rune, len(changes))
	_, atTerminal := h.terminal()
	switch {
	case len(changes)+len(left) == 0:
		h.say("no golden of %s is new or differs\n", run.Agent.Profile)
	case len(accept) > 0:
		if err := acceptFitting(changes, decided, accept); err != nil {
			return err
		}
	case atTerminal:
		h.decide(changes, decided)
	default:
		for i := range changes {
			h.showChange(changes, i)
		}
	}
	count := map[rune]int{}
	for i, c := range changes {
		count[decided[i]]++
		if decided[i] != accepted {
			continue
		}
		change := func() error { return store.Write(of, c.id, c.text) }
		if c.state == "gone" {
			change = func() error { return store.Remove(of, c.id) }
		}
		if err := change(); err != nil {
			return err
		}
	}
	if len(changes) > 0 {
		h.say("accepted %d, rejected %d, left %d; goldens are in %s\n", count[accepted], count[rejected],
			count[open]+count[skipped], filepath.Join(dir, of))
	}
	if count[accepted] < len(changes) || len(left) > 0 {
		return status(1)
	}
	return nil
}

// goldensOf returns the name of the folder in a store that contains the goldens of a run's agent.
func goldensOf(run results.Run) string { return cmp.Or(run.Agent.Goldens, run.Agent.Profile) }

// changesOf returns the goldens that differ from a run. left lists scenarios whose goldens it omits because they also
// failed for another reason.
func changesOf(run results.Run, store golden.Store) (changes []change, left []string, err error) {
	texts := canonicalTexts(run)
	if slices.ContainsFunc(run.Results, func(r results.Result) bool {
		return r.Golden != nil && strings.HasPrefix(r.Golden.Path, "embedded:")
	}) {
		store.Embedded = golden.Shipped()
	}
	for _, r := range run.Results {
		if r.Golden == nil || r.Golden.Recording || r.Repeat > 1 || r.Golden.State != "new" && r.Golden.State != "differs" {
			continue
		}
		if slices.ContainsFunc(verdict.Sightings(&r), func(s verdict.Sighting) bool {
			return !s.Known && s.ID != "golden" && (s.Class == results.Fail || s.Class == results.Error)
		}) {
			left = append(left, r.ID)
			continue
		}
		c := change{id: r.ID, state: "new", text: texts[r.ID]}
		old := ""
		if r.Golden.State == "differs" {
			c.state = "changed"
			if old, _, err = store.Read(goldensOf(run), r.ID); err != nil {
				return nil, nil, err
			}
		}
		if r.Golden.Skipped != "" {
			c.state, c.text = "gone", ""
		} else if c.text == "" {
			return nil, nil, fmt.Errorf("review: the run in %s lacks the text of %s: run it again", run.Out, r.ID)
		}
		if c.pieces = golden.Words(old, c.text); old != c.text {
			changes = append(changes, c)
		}
	}
	return changes, left, nil
}

// acceptFitting accepts the changes whose scenario matches one of the globs. It returns an error for a glob that
// matches none.
func acceptFitting(changes []change, decided []rune, globs []string) error {
	for _, g := range globs {
		fits := false
		for i, c := range changes {
			if glob.Path(g, c.id) {
				decided[i], fits = accepted, true
			}
		}
		if !fits {
			ids := lists.Map(changes, func(c change) string { return c.id })
			return fmt.Errorf("--accept %s matches no scenario with a new or changed golden; those are %s", g,
				strings.Join(ids, ", "))
		}
	}
	return nil
}

// decide asks the user about each change until all are decided or the user quits.
func (h *host) decide(changes []change, decided []rune) {
	in := bufio.NewReader(h.in)
	var done [][]int // for each decision, the indexes of the changes that it applied to
	at := 0
	for at < len(changes) {
		if decided[at] != open {
			at++
			continue
		}
		alike := h.showChange(changes, at)
		fmt.Fprintf(h.out, "[a]ccept, [r]eject, [s]kip, [c] accept all %d alike, [u]ndo, [q]uit? ", len(alike))
		line, err := in.ReadString('\n')
		answer := strings.TrimSpace(line)
		switch {
		case err != nil && answer == "", answer == "q":
			fmt.Fprintln(h.out)
			return
		case answer == "a", answer == "r", answer == "s":
			decided[at] = rune(answer[0])
			done = append(done, []int{at})
		case answer == "c":
			var now []int
			for _, i := range alike {
				if decided[i] == open {
					decided[i] = accepted
					now = append(now, i)
				}
			}
			done = append(done, now)
		case answer == "u" && len(done) > 0:
			for _, i := range done[len(done)-1] {
				decided[i] = open
			}
			at, done = done[len(done)-1][0], done[:len(done)-1]
		}
	}
}

// showChange prints a change word by word, with one line of context. It returns the indexes of all changes with the
// same words, including this one.
func (h *host) showChange(changes []change, at int) (alike []int) {
	c, out := changes[at], h.style(h.out)
	for i, other := range changes {
		if other.cause() == c.cause() {
			alike = append(alike, i)
		}
	}
	fmt.Fprintf(h.out, "\n%d of %d: %s is %s", at+1, len(changes), c.id, c.state)
	if len(alike) > 1 {
		fmt.Fprintf(h.out, "; more with the same change: %d", len(alike)-1)
	}
	fmt.Fprintln(h.out)
	var text strings.Builder
	for _, p := range c.pieces {
		p.Text = printable.Text(p.Text)
		switch p.Op {
		case '-':
			text.WriteString(marked(p.Text, "[-", "-]", out.red))
		case '+':
			text.WriteString(marked(p.Text, "{+", "+}", out.green))
		default:
			text.WriteString(p.Text)
		}
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	shown := func(i int) bool {
		return i >= 0 && i < len(lines) && (strings.Contains(lines[i], "[-") || strings.Contains(lines[i], "{+"))
	}
	for i, line := range lines {
		if shown(i-1) || shown(i) || shown(i+1) {
			fmt.Fprintln(h.out, "  "+line)
		}
	}
	return alike
}

// marked puts from and to around each nonempty line of a text, and colors it with paint.
func marked(text, from, to string, paint func(string) string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" || len(lines) == 1 {
			lines[i] = paint(from + line + to)
		}
	}
	return strings.Join(lines, "\n")
}
