package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/scenarios/script"
)

// formatter prints scenario files in their canonical form.
type formatter struct {
	*host
	list, write, diff bool
}

func formatCommand(h *host) *cobra.Command {
	f := formatter{host: h}
	c := &cobra.Command{
		Use:   "fmt PATH…",
		Short: "formats scenarios",
		Long: `Prints scenarios in their canonical form: one space between words, blocks
indented, no two blank lines in a row; an llm.yaml without comments in block style.
Comments, the texts in quotes and the other files of the archive stay as they are.
A PATH is a file, a folder with scenarios, or - for stdin. The exit status is 2 if
a file cannot be read, with --diff also 1 if one changes.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("fmt: a file or a folder with scenarios is missing; usage: acp-test fmt PATH…")
			}
			if f.write && slices.Contains(args, "-") {
				return errors.New("fmt: stdin cannot be written; leave --write out")
			}
			return f.run(args)
		},
	}
	c.Flags().BoolVarP(&f.list, "list", "l", false, "print the names of files that change, not the files")
	c.Flags().BoolVarP(&f.write, "write", "w", false, "write what changes to its file, and print nothing")
	c.Flags().BoolVarP(&f.diff, "diff", "d", false, "print how the files change, not the files")
	return c
}

func (f *formatter) run(args []string) error {
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

// file formats one file, and reports whether it changes.
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
		var list []error
		for _, m := range mistakes {
			list = append(list, m)
		}
		return false, errors.Join(list...)
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

// kept are comments of YAML, and names that it gives to values: a script with one
// is written as its author wants it.
var kept = regexp.MustCompile(`(?m)(^|\s)#|[-:] +[&*]\w`)

// formatModel formats the model's script. One that cannot be read or that says
// nothing stays as it is.
func formatModel(src []byte) []byte {
	d, err := fakellm.ParseDocument("llm.yaml", src)
	if err != nil || len(d.Turns) == 0 || kept.Match(src) {
		return src
	}
	return []byte(d.Format())
}
