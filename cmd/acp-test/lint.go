package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/script"
)

func lintCommand(h *host) *cobra.Command {
	var suites []string
	var stranger bool
	c := command("lint", cobra.ArbitraryArgs, func(_ *cobra.Command, args []string) error {
		if len(args) == 0 && len(suites) == 0 {
			return errors.New("lint: a file or a folder with scenarios is missing; usage: acp-test lint PATH…")
		}
		p, err := (&options{choice: choice{paths: args, suites: suites}}).speaks(h)
		if err != nil {
			return err
		}
		var list []*scenarios.Scenario
		var errs []error
		if len(args) > 0 {
			l, err := p.Load(args...)
			list, errs = append(list, l...), append(errs, err)
		}
		if len(suites) > 0 {
			l, err := p.Shipped(suites...)
			list, errs = append(list, l...), append(errs, err)
		}
		said := 0
		if err := errors.Join(errs...); err != nil {
			h.say("%v\n", err)
			said++
		}
		for _, s := range list {
			for _, m := range s.Starts() {
				if stranger {
					h.say("%v\n", m)
				}
			}
			for _, m := range p.Review(s) {
				h.say("%v\n", m)
				said++
			}
		}
		if said > 0 {
			return status(2)
		}
		fmt.Fprintln(h.out, printable.Plural(len(list), "scenario passes", "scenarios pass"))
		return nil
	})
	c.Flags().StringSliceVar(&suites, "suite", nil, "a suite in this program, by `NAME` (repeatable)")
	c.Flags().BoolVar(&stranger, "stranger", false, "first list what the scenarios execute")
	return c
}

// formatter prints scenario files in their canonical form.
type formatter struct {
	*host
	list, write, diff bool
	known             map[string]bool // the commands of all protocols
}

func formatCommand(h *host) *cobra.Command {
	f := formatter{host: h}
	c := command("fmt", someArgs("a file or a folder with scenarios"), func(_ *cobra.Command, args []string) error {
		if f.write && slices.Contains(args, "-") {
			return errors.New("fmt: --write cannot write to stdin; leave out --write")
		}
		return f.run(args)
	})
	c.Flags().BoolVarP(&f.list, "list", "l", false, "print only the names of the files whose format changes")
	c.Flags().BoolVarP(&f.write, "write", "w", false, "write changed scenarios back to their files, and print nothing")
	c.Flags().BoolVarP(&f.diff, "diff", "d", false, "print a diff of each changed file instead of the file")
	return c
}

func (f *formatter) run(args []string) error {
	f.known = map[string]bool{}
	for _, p := range protocols() {
		for name := range p.Vocabulary() {
			f.known[name] = true
		}
	}
	var failed []error
	changed := false
	for _, arg := range args {
		files, err := []string{arg}, error(nil)
		if arg != "-" {
			files, err = acp.V1().Files(arg)
		}
		failed = append(failed, err)
		for _, name := range files {
			differs, err := f.file(name)
			failed = append(failed, err)
			changed = changed || differs
		}
	}
	switch err := errors.Join(failed...); {
	case err != nil:
		return err
	case f.diff && changed:
		return status(1)
	}
	return nil
}

// file formats one file. differs reports whether the formatted text is different.
func (f *formatter) file(name string) (differs bool, err error) {
	text, err := f.read(name)
	if err != nil {
		return false, err
	}
	shown := name
	if name == "-" {
		shown = "stdin"
	}
	tree, mistakes := script.Parse(shown, text)
	if len(mistakes) > 0 {
		return false, errors.Join(lists.Map(mistakes, func(m *mistake.Mistake) error { return m })...)
	}
	if err := f.isScenario(shown, tree); err != nil {
		return false, err
	}
	for i, part := range tree.Files {
		if part.Name == "llm.yaml" {
			tree.Files[i].Data = formatModel(part.Data)
		}
	}
	tidy := script.Format(tree)
	differs = !bytes.Equal(text, tidy)
	if !f.list && !f.write && !f.diff {
		_, err = f.out.Write(tidy)
		return differs, err
	}
	if !differs {
		return false, nil
	}
	if f.list {
		fmt.Fprintln(f.out, shown)
	}
	if f.diff {
		fmt.Fprintf(f.out, "diff %s\n%s", shown, golden.Diff(string(text), string(tidy)))
	}
	if f.write {
		err = os.WriteFile(name, tidy, 0o644)
	}
	return differs, err
}

// isScenario returns an error for the first line whose command no protocol knows. It keeps fmt from formatting other
// files, such as YAML.
func (f *formatter) isScenario(file string, tree *script.File) error {
	for l := range tree.All() {
		if l.Kind != script.Command || l.Name.Raw() == "" {
			continue
		}
		if !f.known[l.Name.Raw()] {
			return fmt.Errorf("%s:%d:%d: %q is not a scenario command, so fmt skips the file; acp-test lint says more",
				file, l.Number, l.Name.Column, l.Name.Raw())
		}
	}
	return nil
}

// kept matches comments and anchors of YAML. A model script that contains them is not formatted.
var kept = lazy.Regexp(`(?m)(^|\s)#|[-:] +[&*]\w`)

// formatModel formats a model script. It returns a script unchanged if it is invalid, empty, or has comments or
// anchors.
func formatModel(src []byte) []byte {
	d, err := fakellm.ParseDocument("llm.yaml", src)
	if err != nil || len(d.Turns) == 0 || kept().Match(src) {
		return src
	}
	return []byte(d.Format())
}
