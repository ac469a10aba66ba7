package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/protocol/acp/scratch"
	"github.com/acp-test/acp-test/transcript"
)

// doer performs the actions that ui's page requests. It runs only the agent that the user named on the command line,
// never an agent that a file names.
type doer struct {
	h      *host
	server *inspector.Server
	agent  []string // final words of a command line, which name the agent; nil if there is none
	temp   string   // folder for new runs
}

// asked is the body of a request from the page.
type asked struct {
	Source   int
	File     string // path of the transcript
	ID, Path string // id and file of the scenario
	From, To int    // Seqs of a selection; To 0 is the end of the transcript
	At       int    // Seq of a frame
}

// made is the answer to a request: a text, and notes on parts that the text leaves out.
type made struct {
	Title string   `json:"title,omitempty"`
	Text  string   `json:"text"`
	Left  []string `json:"left,omitempty"`
}

func (d *doer) actions() map[string]inspector.Action {
	all := map[string]func(context.Context, asked) (made, error){"scenario": d.scenario, "cancel": d.cancel}
	if d.agent != nil {
		all["rerun"], all["reduce"], all["update"] = d.rerun, d.reduce, d.update
	}
	out := map[string]inspector.Action{}
	for name, do := range all {
		out[name] = func(ctx context.Context, body json.RawMessage) (any, error) {
			var a asked
			if err := json.Unmarshal(body, &a); err != nil {
				return nil, err
			}
			return do(ctx, a)
		}
	}
	return out
}

// scenario makes a scenario from the turns of a transcript that overlap a selection.
func (d *doer) scenario(_ context.Context, a asked) (made, error) {
	return d.converted(a, func(t *transcript.Transcript, of protocol) (*recordings.Converted, error) {
		t, err := selected(t, of, a.From, a.To)
		if err != nil {
			return nil, err
		}
		return recordings.Convert(of.Protocol, t, "Made of "+a.File+".", nil)
	})
}

// cancel makes a scenario that repeats a transcript up to a frame and then cancels the turn.
func (d *doer) cancel(_ context.Context, a asked) (made, error) {
	return d.converted(a, func(t *transcript.Transcript, of protocol) (*recordings.Converted, error) {
		title := fmt.Sprintf("Made of %s: the turn is cancelled at #%d.", a.File, a.At)
		return recordings.CancelAt(of.Protocol, t, a.At, title)
	})
}

// converted converts a transcript into a scenario and returns its text and the parts left out.
func (d *doer) converted(a asked,
	convert func(*transcript.Transcript, protocol) (*recordings.Converted, error)) (made, error) {
	file, err := d.server.Open(a.Source, a.File)
	if err != nil {
		return made{}, err
	}
	defer file.Close()
	t, of, err := d.h.session(file)
	if err != nil {
		return made{}, err
	}
	if of.Name != acp.V1().Name {
		return made{}, fmt.Errorf("a scenario requires a recording of %s; this one is of %s", acp.V1().Name, of.Name)
	}
	done, err := convert(t, of)
	if err != nil {
		return made{}, err
	}
	return made{Title: "Scenario", Text: string(done.Text), Left: done.Left}, nil
}

// selected returns a copy of a transcript without the turns that do not overlap the entries from..to. It keeps
// entries outside of turns. If no turn overlaps the range, it returns the whole transcript.
func selected(t *transcript.Transcript, of protocol, from, to int) (*transcript.Transcript, error) {
	if to <= 0 {
		to = t.Len()
	}
	type turn struct{ from, to int }
	var turns []turn
	ends := map[int]int{}
	for e := range t.All() {
		if e.Ref > 0 && e.Kind != transcript.Written {
			ends[e.Ref] = e.Seq
		}
	}
	for e := range t.All() {
		if of.Prompts(e) {
			end, ok := ends[e.Seq]
			if !ok {
				end = t.Len()
			}
			turns = append(turns, turn{e.Seq, end})
		}
	}
	touches := func(x turn) bool { return x.from <= to && x.to >= from }
	if !slices.ContainsFunc(turns, touches) {
		return t, nil
	}
	var whole, part bytes.Buffer
	if err := t.Save(&whole); err != nil {
		return nil, err
	}
	seq := 0
	for line := range bytes.Lines(whole.Bytes()) {
		in := func(x turn) bool { return x.from <= seq && seq <= x.to }
		kept := func(x turn) bool { return in(x) && touches(x) }
		if !slices.ContainsFunc(turns, in) || slices.ContainsFunc(turns, kept) {
			part.Write(line)
		}
		seq++
	}
	return transcript.Load(&part, of.Classifier)
}

// rerun runs a scenario again into a new folder and adds that folder to the page.
func (d *doer) rerun(ctx context.Context, a asked) (made, error) {
	text, err := d.runChosen(ctx, a, "again-", func(out string) {
		d.server.Add(inspector.Source{Name: "run " + filepath.Base(filepath.Dir(out)), Dir: out})
	})
	return made{Title: "Run again: the index shows the new run", Text: text}, err
}

// update rewrites the golden of a scenario. The page has shown the difference before.
func (d *doer) update(ctx context.Context, a asked) (made, error) {
	text, err := d.runChosen(ctx, a, "update-", func(string) {}, "--update")
	return made{Title: "The golden is updated", Text: text}, err
}

// runChosen runs a scenario into a new folder and returns the output of the command. It calls begin with the folder
// before the run.
func (d *doer) runChosen(ctx context.Context, a asked, name string, begin func(out string),
	flags ...string) (string, error) {
	out, err := os.MkdirTemp(d.temp, name)
	if err != nil {
		return "", err
	}
	out = filepath.Join(out, "acp-test-out")
	words, err := d.chosen(a, append(flags, "--out", out)...)
	if err != nil {
		return "", err
	}
	begin(out)
	return d.run(ctx, words)
}

// reduce returns the shortest scenario that still reproduces the failure in a transcript.
func (d *doer) reduce(ctx context.Context, a asked) (made, error) {
	file, err := d.server.Open(a.Source, a.File)
	if err != nil {
		return made{}, err
	}
	name := file.Name()
	file.Close() // the command opens it again
	dir, err := os.MkdirTemp(d.temp, "reduce-")
	if err != nil {
		return made{}, err
	}
	to, issue := filepath.Join(dir, "reduced.txtar"), filepath.Join(dir, "issue.md")
	text, err := d.run(ctx, append([]string{"reduce", name, "-q", "--out", to, "--issue", issue}, d.agent...))
	if err != nil {
		return made{}, err
	}
	for _, name := range []string{to, issue} {
		part, err := os.ReadFile(name)
		if err != nil {
			return made{}, err
		}
		text += "\n" + string(part)
	}
	return made{Title: "Reduced", Text: text}, nil
}

// chosen returns the command line that runs one scenario. A shipped scenario is chosen by id, any other by file. The
// file must be below the user's folder, but outside of all shown folders: the author of a shown folder could
// otherwise choose what to run.
func (d *doer) chosen(a asked, flags ...string) ([]string, error) {
	words := append([]string{"run", "-q"}, flags...)
	if suite, _, _ := strings.Cut(a.ID, "/"); slices.Contains(suiteNames(), suite) {
		words = append(words, "--run", "^"+regexp.QuoteMeta(a.ID)+"$")
	} else {
		file := d.h.absolute(filepath.FromSlash(a.Path))
		shown := func(s inspector.Source) bool { return s.File == "" && within(s.Dir, file) }
		if !isFile(file) || !within(d.h.cwd, file) || slices.ContainsFunc(d.server.Shown(), shown) {
			return nil, fmt.Errorf("%s is not a scenario below %s: run acp-test ui where the run was made", a.Path, d.h.cwd)
		}
		words = append(words, file)
	}
	return append(words, d.agent...), nil
}

// run runs this program and returns its output. Exit status 1 of the command run is not an error, because it only
// reports failures.
func (d *doer) run(ctx context.Context, words []string) (string, error) {
	var out bytes.Buffer
	c := exec.CommandContext(ctx, d.h.self, words...)
	c.Dir, c.Env, c.Stdout, c.Stderr = d.h.cwd, d.h.env, &out, &out
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 && words[0] == "run" {
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("acp-test %s: %w\n%s", words[0], err, out.String())
	}
	return out.String(), nil
}

// scratch starts the agent for the prompts that the user types on the page, and adds its transcript to the page. stop
// ends the agent.
func (h *host) scratch(ctx context.Context, o *viewing, server *inspector.Server,
	temp string) (stop func(), err error) {
	of := acpV1()
	p, err := o.subject.subject(h, of)
	if err != nil {
		return nil, err
	}
	faulty, err := o.subject.faulty(of, p)
	if err != nil {
		return nil, err
	}
	if len(faulty) > 0 {
		p = p.WithCommand(slices.Concat(p.Command, faulty))
	}
	keeper := []string{h.self, "keeper"}
	place, err := process.NewTempDir(keeper, "", "")
	if err != nil {
		return nil, err
	}
	shown := filepath.Join(temp, "scratch")
	if err := os.Mkdir(shown, 0o700); err != nil {
		return nil, err
	}
	log, err := transcript.New(transcript.Header{Tool: tool(), Agent: p.Name, Scenario: "scratch", Protocol: of.Version},
		transcript.Options{Classifier: of.Classifier, Path: filepath.Join(shown, "transcript.jsonl"),
			Through: true /* the page reads it at once */, Redact: h.redactor(of)})
	if err != nil {
		return nil, err
	}
	s, err := scratch.Start(ctx, scratch.Options{Profile: p, Box: h.sandbox(), Root: place.Dir(), Log: log, Keeper: keeper,
		Step: o.step})
	stop = func() {
		if s != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			s.Close(ctx)
		}
		log.Close()   // the file has been removed already
		place.Close() // the keeper removes the files that this process cannot
	}
	if err != nil {
		stop()
		return nil, err
	}
	server.Add(inspector.Source{Name: "scratch", Dir: shown, File: "transcript.jsonl"})
	server.Actions["scratch"] = func(_ context.Context, body json.RawMessage) (any, error) {
		var a scratch.Act
		if err := json.Unmarshal(body, &a); err != nil {
			return nil, err
		}
		if a.Do != "" {
			if err := s.Do(ctx, a); err != nil {
				return nil, err
			}
		}
		return s.State(), nil
	}
	return stop, nil
}
