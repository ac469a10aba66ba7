package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
	"github.com/acp-test/acp-test/transcript"
)

func showCommand(h *host) *cobra.Command {
	var masked, exact bool
	var page string
	c := command("show", exactArgs(1, "a transcript"), func(_ *cobra.Command, args []string) error {
		if page != "" && (masked || exact) {
			return errors.New("--html contradicts --canonical and --exact")
		}
		if masked || exact {
			return h.canonicalText(args[0], exact)
		}
		t, of, err := h.openRecording(args[0], h.session)
		if err != nil {
			return err
		}
		h.leftOut(args[0], t)
		if page != "" {
			return h.page(args[0], t, of, page)
		}
		return h.show(t, of)
	})
	c.Flags().BoolVarP(&masked, "canonical", "f", false, "print the canonical text, as in goldens")
	c.Flags().BoolVar(&exact, "exact", false, "like -f, but with every chunk, in the order of arrival")
	c.Flags().StringVar(&page, "html", "", "write the HTML page of a report to `OUT` (- is stdout)")
	return c
}

// canonicalText prints the canonical text of a recording. If the renderer must survey all entries first, it does so
// while the recording is read.
func (h *host) canonicalText(name string, exact bool) error {
	var text golden.Renderer
	t, of, err := h.openRecording(name, func(in io.Reader) (*transcript.Transcript, protocol, error) {
		return h.readSession(in, func(of protocol) (see func(transcript.Entry)) {
			if s, ok := of.Canonical.(golden.Surveyor); ok {
				see, text = s.Survey()
			} else {
				text = of.Canonical
			}
			return see
		})
	})
	if err != nil {
		return err
	}
	h.leftOut(name, t)
	o := replay.Masked(of.recordings, t, golden.Options{Exact: exact})
	_, err = io.WriteString(h.out, text.Render(t.Shown(), o))
	return err
}

// page writes an HTML report with only this transcript.
func (h *host) page(name string, t *transcript.Transcript, of protocol, out string) (err error) {
	dir, err := os.MkdirTemp("", "acp-test-show-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	const entries, text = "transcript.jsonl", "rendered.txt"
	if err := writeFile(filepath.Join(dir, entries), t.Save); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, text), []byte(of.judge("v1").Canonical(t)), 0o600); err != nil {
		return err
	}
	head := t.Header()
	res := of.judge("v1").Check(name, t)
	res.Artifacts = map[string]string{"transcript": entries, "rendered": text}
	run := h.newRun(results.Agent{Profile: head.Agent, Version: res.AgentVersion})
	run.Protocol, run.Started, run.Duration, run.Out, run.Results = head.Protocol, head.Started, res.Duration, dir,
		[]results.Result{res}
	verdict.Conclude(&run)
	return h.report(run, "html", out)
}

func (h *host) show(t *transcript.Transcript, of protocol) error {
	s := h.style(h.out)
	w := bufio.NewWriter(h.out)
	if title := headline(t.Header()); title != "" {
		fmt.Fprintln(w, s.faint("# "+printable.Line(title, 200)))
	}
	width := len(fmt.Sprint(t.Len()))
	for e := range t.All() {
		line := printable.Text(of.Canonical.Line(e))
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

func headline(h transcript.Header) string {
	parts := lists.Where([]string{h.Scenario, h.Agent, h.Tool}, func(p string) bool { return p != "" })
	if !h.Started.IsZero() {
		parts = append(parts, h.Started.Format("2006-01-02 15:04:05 MST"))
	}
	return strings.Join(parts, ", ")
}

// someArgs requires at least one argument. Its error calls the argument by the noun in what.
func someArgs(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s: %s is missing; usage: %s", c.Name(), what, c.UseLine())
		}
		return nil
	}
}

// exactArgs requires n arguments. Its error calls the argument by the noun in what.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < n {
			args = nil
		}
		return cmp.Or(someArgs(what)(c, args), atMost(n)(c, args))
	}
}

// oneBeforeAgent requires exactly one word before the agent's command.
func oneBeforeAgent(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if ours, _ := atDash(c, args); len(ours) != 1 {
			return fmt.Errorf("%s: one %s is expected; usage: %s", c.Name(), what, c.UseLine())
		}
		return nil
	}
}

// atMost allows at most n arguments. Its error names the first surplus argument.
func atMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return fmt.Errorf("%s: unexpected argument %q; usage: %s", c.Name(), args[n], c.UseLine())
		}
		return nil
	}
}

// style colors text for one stream. It adds no colors if the stream is not a terminal, the terminal supports none, or
// NO_COLOR is set (https://no-color.org).
type style struct{ colours bool }

func (h *host) style(w io.Writer) style {
	noColour, _ := h.getenv("NO_COLOR")
	kind, _ := h.getenv("TERM")
	return style{isTerminal(w) && noColour == "" && kind != "dumb"}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (s style) put(code, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) faint(text string) string { return s.put("2", text) }
func (s style) red(text string) string   { return s.put("31", text) }
func (s style) green(text string) string { return s.put("32", text) }
func (s style) blue(text string) string  { return s.put("34", text) }

// getenv returns a variable of the host's environment. If a name occurs several times, the last value counts.
func (h *host) getenv(name string) (string, bool) {
	for i := len(h.env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(h.env[i], name+"="); ok {
			return v, true
		}
	}
	return "", false
}
