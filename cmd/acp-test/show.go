package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/transcript"
)

func showCommand(h *host) *cobra.Command {
	var canonical, exact bool
	c := &cobra.Command{
		Use:   "show FILE",
		Short: "a transcript for people",
		Long: `Prints a transcript, one line an entry, with its number and its time in
milliseconds. FILE is a transcript.jsonl, the folder that holds one, or - for
stdin. With -f it is the canonical text that goldens keep: only what crossed the
wire, in an order that does not depend on chance.`,
		Args: exactArgs(1, "a transcript"),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := h.transcript(args[0])
			if err != nil {
				return err
			}
			if canonical || exact {
				_, err = io.WriteString(h.out, golden.Render(t.All(), golden.Options{Exact: exact, Work: workspace(t)}))
				return err
			}
			return h.show(t)
		},
	}
	c.Flags().BoolVarP(&canonical, "canonical", "f", false, "the canonical text, as goldens have it")
	c.Flags().BoolVar(&exact, "exact", false, "as -f, but every chunk, in the order of arrival")
	return c
}

// transcript loads the file that a command line names.
func (h *host) transcript(name string) (*transcript.Transcript, error) {
	in := h.in
	if name != "-" {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			name = filepath.Join(name, "transcript.jsonl")
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	t, err := transcript.Load(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

func (h *host) show(t *transcript.Transcript) error {
	s := h.style(h.out)
	w := bufio.NewWriter(h.out)
	if title := headline(t.Header()); title != "" {
		fmt.Fprintln(w, s.faint("# "+title))
	}
	width := len(fmt.Sprint(t.Len()))
	for e := range t.All() {
		line := golden.Line(e)
		switch {
		case e.Kind == transcript.Malformed || e.Problem != "":
			line = s.red(line)
		case e.Source == transcript.Editor:
			line = s.blue(line)
		case e.Source == transcript.Agent:
			line = s.green(line)
		default:
			line = s.faint(line)
		}
		place := fmt.Sprintf("#%-*d %10.3f", width, e.Seq, float64(e.At.Microseconds())/1000)
		if e.Conn > 0 {
			place += fmt.Sprintf(" [%d]", e.Conn)
		}
		fmt.Fprintf(w, "%s  %s\n", s.faint(place), line)
	}
	if t.Torn() {
		fmt.Fprintln(w, s.red("# the file ends in the middle of a line"))
	}
	return w.Flush()
}

// workspace is the folder of the first session, which a canonical text masks.
func workspace(t *transcript.Transcript) string {
	for e := range t.All() {
		if e.Kind == transcript.Request && e.Source == transcript.Editor && e.Method == "session/new" {
			return e.JSON().Path("params.cwd").Str()
		}
	}
	return ""
}

func headline(h transcript.Header) string {
	var parts []string
	for _, p := range []string{h.Scenario, h.Agent, h.Tool} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if !h.Started.IsZero() {
		parts = append(parts, h.Started.Format("2006-01-02 15:04:05 MST"))
	}
	return strings.Join(parts, ", ")
}

// exactArgs is cobra.ExactArgs with a message that says what is missing.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < n:
			return fmt.Errorf("%s: %s is missing; usage: %s", c.Name(), what, c.UseLine())
		case len(args) > n:
			return fmt.Errorf("%s: %q is too much; usage: %s", c.Name(), args[n], c.UseLine())
		}
		return nil
	}
}
