package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/protocol/acp/invariants"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

func reportCommand(h *host) *cobra.Command {
	c := command("report", func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return fmt.Errorf("report: there is no command %q%s: acp-test help report lists them", args[0],
			mistake.Meant(args[0], []string{"merge", "convert"}))
	}, func(c *cobra.Command, _ []string) error { return c.Help() })
	c.AddCommand(mergeCommand(h), convertCommand(h))
	return c
}

func mergeCommand(h *host) *cobra.Command {
	var out string
	var asked []string
	var quiet bool
	c := command("report merge", cobra.ArbitraryArgs, func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("report merge: the results of the parts are missing; usage: acp-test report merge FILE…")
		}
		if err := checkFormats("--report", asked); err != nil {
			return err
		}
		return h.merge(args, out, asked, quiet)
	})
	c.Flags().StringVar(&out, "out", "acp-test-out", "the folder for the merged run, `DIR`")
	c.Flags().StringArrayVar(&asked, "report", nil, "one more report, `FORMAT[=FILE]` (repeatable)")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "show failures and the summary only")
	completeWords(c, "report", reports.Formats)
	return c
}

func (h *host) merge(files []string, out string, asked []string, quiet bool) error {
	var parts []results.Run
	for _, file := range files {
		run, err := readResults(file)
		if err != nil {
			return err
		}
		if within(out, run.Out) {
			return fmt.Errorf("--out: report merge empties %s first, and %s is in it; name another folder", out, file)
		}
		parts = append(parts, run)
	}
	whole, err := verdict.Merge(invariants.V1(), parts)
	if err != nil {
		return fmt.Errorf("these are not the parts of one run:\n%w", err)
	}
	release, err := h.prepareOut(out)
	if err != nil {
		return err
	}
	defer release()
	if whole.Out, err = filepath.Abs(out); err != nil {
		return err
	}
	var lost []string
	for _, p := range parts {
		missing, err := collect(p, whole.Out)
		if err != nil {
			return err
		}
		lost = append(lost, missing...)
	}
	if len(lost) > 0 {
		whole.Notes = append(whole.Notes,
			fmt.Sprintf("%d files of scenarios are missing next to results.json; the first is %s", len(lost), lost[0]))
	}
	console := reports.NewConsole(h.out, reports.ConsoleOptions{Color: h.style(h.out).colours, Quiet: quiet})
	return h.concluded(console, whole, asked)
}

// within reports whether name is the folder itself or a path below it.
func within(folder, name string) bool {
	a, err1 := filepath.Abs(folder)
	b, err2 := filepath.Abs(name)
	rel, err3 := filepath.Rel(a, b)
	return err1 == nil && err2 == nil && err3 == nil && rel != ".." &&
		!strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// member returns name if it is not a folder. If name is a folder, it returns the path of file in that folder. If the
// folder has no such file, the error suggests a similar one.
func member(name, file string) (string, error) {
	if !exists(name, true) {
		return name, nil
	}
	folder, name := name, filepath.Join(name, file)
	if exists(name, false) {
		return name, nil
	}
	also, instead := filepath.Ext(file), ""
	if like, _ := filepath.Glob(filepath.Join(folder, "*"+also)); len(like) > 0 {
		instead = "; name one of its files, such as " + like[0]
	}
	return "", fmt.Errorf("%s: this folder holds no %s%s", folder, file, instead)
}

// readResults reads a results.json. name is its path or that of its folder. It sets Out to that folder, because the
// artifacts are there even if another machine wrote the file.
func readResults(name string) (results.Run, error) {
	name, err := member(name, "results.json")
	if err != nil {
		return results.Run{}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return results.Run{}, err
	}
	defer f.Close()
	run, err := reports.Read(f)
	if err != nil {
		return run, fmt.Errorf("%s: %w", name, err)
	}
	run.Out, err = filepath.Abs(filepath.Dir(name))
	return run, err
}

// collect copies the files of the scenarios in one part of a run. It returns the names of missing files. It opens
// both folders as roots that no file name can escape, because the names come from an untrusted file.
func collect(part results.Run, out string) (missing []string, err error) {
	from, err := os.OpenRoot(part.Out)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := os.OpenRoot(out)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	for _, r := range part.Results {
		for _, what := range slices.Sorted(maps.Keys(r.Artifacts)) {
			name := path.Clean(r.Artifacts[what])
			err := fs.WalkDir(from.FS(), name, func(file string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				return copyFile(from, to, file)
			})
			switch {
			case errors.Is(err, fs.ErrNotExist):
				missing = append(missing, name)
			case err != nil:
				return nil, fmt.Errorf("copying %s of %s: %w", what, r.ID, err)
			}
		}
	}
	return missing, nil
}

func copyFile(from, to *os.Root, name string) error {
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := to.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := to.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}

func convertCommand(h *host) *cobra.Command {
	var to, out string
	c := command("report convert", exactArgs(1, "a results.json"), func(c *cobra.Command, args []string) error {
		if to == "" {
			return fmt.Errorf("report convert: --to is missing; usage: %s --to FORMAT; formats: %s", c.CommandPath()+
				" FILE", strings.Join(reports.Formats(), ", "))
		}
		if err := checkFormats("--to", []string{to}); err != nil {
			return err
		}
		run, err := readResults(args[0])
		if err != nil {
			return err
		}
		return h.report(run, to, out)
	})
	c.Long = strings.Replace(c.Long, "FORMATS", formatList(), 1)
	c.Flags().StringVar(&to, "to", "", "the `FORMAT`")
	c.Flags().StringVarP(&out, "out", "o", "-", "the `FILE` to write; - is stdout")
	completeWords(c, "to", reports.Formats)
	return c
}

func formatList() string {
	lines := lists.Map(reports.Formats(), func(name string) string {
		_, about := reports.File(name)
		return fmt.Sprintf("  %-10s %s", name, about)
	})
	return strings.Join(lines, "\n")
}

// checkFormats returns an error if a value FORMAT[=FILE] has an unknown format, or if its FILE is a folder.
func checkFormats(flag string, asked []string) error {
	for _, r := range asked {
		format, file, _ := strings.Cut(r, "=")
		if err := oneOf(flag, "format", format, reports.Formats()); err != nil {
			return err
		}
		if exists(file, true) {
			return fmt.Errorf("%s %s: %s is a folder; expected a file", flag, r, file)
		}
	}
	return nil
}
