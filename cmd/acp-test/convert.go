package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/protocol/translate"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// converting holds the flags of convert.
type converting struct {
	to, llm, out, title, agent, golden string
	partial                            bool
	cancelAt                           int // Seq of an entry; 0 if not set
}

func convertRecordingCommand(h *host) *cobra.Command {
	var o converting
	c := command("convert", exactArgs(1, "a recording"), func(_ *cobra.Command, args []string) error {
		switch o.to {
		case "scenario":
			return h.convert(&o, args[0])
		case "ag-ui", "acp":
			return h.translate(&o, args[0])
		}
		return fmt.Errorf("convert --to %s: scenario, ag-ui or acp is expected", o.to)
	})
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.to, "to", "scenario", "the form of the result: scenario, ag-ui or acp")
	f.StringVar(&o.out, "out", "", "write the scenario to `FILE`, and its golden to --golden")
	f.StringVar(&o.agent, "agent", "", "the agent that the golden belongs to, by the `NAME` or file of its profile")
	f.StringVar(&o.golden, "golden", "golden", "the folder of goldens, `DIR`")
	f.StringVar(&o.llm, "llm", "", "the model's script, a `FILE`")
	f.IntVar(&o.cancelAt, "cancel-at", 0, "cancel the turn at entry `N` of the recording")
	f.BoolVar(&o.partial, "partial", false, "exit with status 0 even if the result leaves something out")
	f.StringVar(&o.title, "title", "", "the scenario's first line, a sentence")
	return c
}

func (h *host) convert(o *converting, file string) error {
	t, of, err := h.recordingOf(file)
	if err != nil {
		return err
	}
	model, err := modelOf(file, o.llm)
	if err != nil {
		return err
	}
	title := cmp.Or(o.title, "Recorded: "+nameOf(file, t)+".")
	if o.agent != "" {
		if _, err := agents.Find(o.agent); err != nil {
			return fmt.Errorf("--agent: %w", err)
		}
	}
	var made *recordings.Converted
	switch {
	case o.cancelAt == 0:
		made, err = of.convert(t, title, model)
	case of.Name != acp.V1().Name:
		err = fmt.Errorf("--cancel-at requires a recording of %s; this one is of %s", acp.V1().Name, of.Name)
	case o.llm != "":
		err = errors.New("--cancel-at and --llm contradict each other")
	default:
		made, err = recordings.CancelAt(of.Protocol, t, o.cancelAt, title)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	h.omitted(made.Left)
	return o.whole(made.Left, h.deliver(o, of, made, t))
}

// omitted tells the user which parts of the original the converted file lacks.
func (h *host) omitted(left []string) {
	for _, what := range left {
		fmt.Fprintf(h.err, "acp-test: left out: %s\n", printable.Line(what, 1000))
	}
}

// whole returns err if it is not nil. Otherwise it returns exit status 1 if the conversion left something out and
// --partial is not set.
func (o *converting) whole(left []string, err error) error {
	if err == nil && len(left) > 0 && !o.partial {
		return status(1)
	}
	return err
}

// translate converts a recording to the other protocol.
func (h *host) translate(o *converting, file string) error {
	t, of, err := h.recordingOf(file)
	if err != nil {
		return err
	}
	ways := map[[2]string]func(*transcript.Transcript) *translate.Said{
		{"acp-v1", "ag-ui"}: translate.ToAGUI, {"ag-ui", "acp"}: translate.ToACP}
	way := ways[[2]string{of.Name, o.to}]
	if way == nil {
		return fmt.Errorf("convert --to %s: %s cannot be converted to it: it is a recording of %s", o.to, file, of.Name)
	}
	said := way(t)
	h.omitted(said.Left)
	return o.whole(said.Left, h.put(append(bytes.Join(said.Lines, []byte("\n")), '\n'), o.out))
}

// put writes text to a file, or to stdout if file is "". It removes control sequences if stdout is a terminal.
func (h *host) put(text []byte, file string) error {
	if file != "" {
		return writeFile(file, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	}
	if isTerminal(h.out) {
		text = []byte(printable.Text(string(text)))
	}
	_, err := h.out.Write(text)
	return err
}

// deliver writes a scenario to --out or stdout. With --out it also writes the scenario's golden.
func (h *host) deliver(o *converting, of protocol, made *recordings.Converted, t *transcript.Transcript) error {
	p, err := profileOf(o.agent, t)
	if err != nil && o.out != "" {
		return err
	}
	if err := h.put(made.Text, o.out); err != nil || o.out == "" || made.NoGolden {
		return err
	}
	if p == nil {
		fmt.Fprintf(h.err, "acp-test: %s gets no golden: no profile fits the recorded agent; name one with --agent\n",
			o.out)
		return nil
	}
	return writeGolden(o, of, made, p)
}

// nameOf returns the name of a recording. For a transcript in the folder of a run, the name is the scenario's id,
// unless that id leads out of the results folder. For any other recording it is the file name without its extension.
func nameOf(file string, t *transcript.Transcript) string {
	base := filepath.Base(file)
	name := t.Header().Scenario
	if info, err := os.Stat(file); filepath.IsLocal(name) && (base == "transcript.jsonl" || err == nil && info.IsDir()) {
		return name
	}
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// modelOf reads the model script from the file named. If named is "", it reads the script that was recorded next to
// the recording, or returns nil if there is none.
func modelOf(file, named string) ([]byte, error) {
	if named == "" {
		text, err := os.ReadFile(scriptOf(file))
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return text, err
	}
	text, err := os.ReadFile(named)
	if err != nil {
		return nil, fmt.Errorf("--llm: %w", err)
	}
	return text, nil
}

// checkModel returns the first mistake in the model script that --llm names.
func checkModel(named string) error {
	text, err := modelOf("", named)
	if err == nil {
		_, err = fakellm.ParseScript(named, text, func(text string) (string, error) { return text, nil })
	}
	return err
}

// scriptOf returns the path of the file to which record --llm writes the model's side of a recording.
func scriptOf(recording string) string {
	return strings.TrimSuffix(recording, filepath.Ext(recording)) + ".llm.yaml"
}

// profileOf returns the profile with the given name. If name is "", it returns the shipped profile with the recorded
// agent's name or command, or nil if no profile matches.
func profileOf(name string, t *transcript.Transcript) (*agents.Profile, error) {
	if name != "" {
		return agents.Find(name)
	}
	for _, shipped := range agents.Names() {
		p, err := agents.Shipped(shipped)
		if err != nil {
			return nil, err
		}
		if recorded := t.Header().Agent; recorded == p.Name || recorded == agents.AdHoc(p.Command).Name {
			return p, nil
		}
	}
	return nil, nil
}

// writeGolden writes the golden of a converted scenario. The golden's id is the scenario's id in the file --out.
func writeGolden(o *converting, of protocol, made *recordings.Converted, p *agents.Profile) error {
	list, err := of.Load(o.out)
	if err != nil {
		return err
	}
	text := made.Golden(of.Canonical, scenarios.GoldenOptions(p))
	return golden.Store{Dir: o.golden}.Write(of.GoldensOf(p), list[0].ID, text)
}
