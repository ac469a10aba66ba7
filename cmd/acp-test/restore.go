package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// restored is the environment of a recorded agent, recreated in new directories.
type restored struct {
	recording *transcript.Transcript
	box       agents.Sandbox
	renamed   [][2]string // pairs of recorded addresses and paths, and their replacements
	beside    [2]string   // the recorded parent of the workspace and its replacement; empty if the parent does not move
	set       map[string]string
	lacking   []string // sentences for the user about things that are missing or withheld from the agent
	closers   []io.Closer
	root      string                    // the parent of the replay's directories
	web       map[string]*canary.Server // HTTP servers that replace recorded MCP servers, by name
}

// Close ends the servers.
func (r *restored) Close() error {
	return errors.Join(lists.Map(r.closers, io.Closer.Close)...)
}

// furnish creates the directories of a replay and the files of its workspace. It copies them from the folder files
// or, if files is "", from the recording. If the recording is not trusted, the agent gets nothing that it could start
// or contact.
func (h *host) furnish(root string, recording *transcript.Transcript, files string, trusted bool) (*restored, error) {
	// The folder is named like that of a run. Some agents print this name, and their profiles mask it.
	root, err := os.MkdirTemp(root, "acp-test-run-")
	if err != nil {
		return nil, err
	}
	dirs, err := workspace.MakeDirs(root)
	if err != nil {
		return nil, err
	}
	r := &restored{recording: recording, root: dirs.Root, web: map[string]*canary.Server{},
		box: agents.Sandbox{Work: dirs.Work, Home: dirs.Home, Temp: dirs.Temp, Self: h.self, Cwd: h.cwd, HostEnv: h.env}}
	places, noted := replay.PlacesOf(recording)
	if r.set = places.Set; !trusted {
		r.keepBack(&places)
	}
	if places.Temp != "" {
		r.renamed = append(r.renamed, [2]string{places.Temp, dirs.Temp},
			[2]string{filepath.Dir(places.Temp), dirs.Root})
	}
	if err := r.serveMCP(trusted); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	work, home := replay.Directories(recordings.V1(), recording)
	// Files next to the workspace move with it, unless its parent is a system folder.
	if beside := filepath.Dir(work); beside != home && strings.Count(beside, "/") > 1 {
		r.beside = [2]string{beside, dirs.Root}
		r.renamed = append(r.renamed, r.beside)
	}
	moved := func(list []workspace.Listed) []workspace.Listed {
		for i, f := range list {
			if f.Text != nil {
				text := replay.ReplacePath(replay.ReplacePath(*f.Text, work, dirs.Work), home, dirs.Home)
				list[i].Text = &text
			}
		}
		return list
	}
	switch {
	case files != "":
		if err = os.CopyFS(dirs.Work, os.DirFS(files)); err != nil {
			err = fmt.Errorf("--files %s: %w", files, err)
		}
	case noted:
		var lacking []string
		lacking, err = workspace.Restore(dirs.Work, moved(places.Files))
		r.lacking = append(r.lacking, lacking...)
		if err == nil {
			_, err = workspace.Restore(dirs.Home, moved(places.HomeFiles))
		}
		if places.Cut != "" {
			r.lacking = append(r.lacking, "the recording lacks files of the workspace: "+places.Cut)
		}
	default:
		r.lacking = append(r.lacking,
			"the recording does not list the workspace's files; the replay has those in messages (--files DIR adds others)")
		err = workspace.Write(dirs.Work, recordings.Files(recording))
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// serveMCP replaces the recorded canaries (acp-test's own MCP servers) with new ones. It adds the new commands,
// tokens and addresses to r.renamed.
func (r *restored) serveMCP(trusted bool) error {
	for _, s := range recordings.Servers(r.recording) {
		switch {
		case s.Canary() && s.Command != "":
			r.renamed = append(r.renamed, [2]string{s.Command, r.box.Self}, [2]string{s.Token, r.token()})
			if n := len(s.Args); filepath.IsAbs(s.Args[n-1]) {
				r.renamed = append(r.renamed, [2]string{filepath.Dir(s.Args[n-1]), r.box.Temp})
			}
		case s.Canary() && s.URL != "":
			server, err := r.overHTTP(s.Name)
			if err != nil {
				return err
			}
			r.renamed = append(r.renamed, [2]string{s.Token, r.token()}, [2]string{s.URL, server.Entry(s.Name).URL})
		case trusted && (s.Command != "" || s.URL != ""):
			r.lack("the recording lacks the replies of the MCP server %s: the agent uses the real server", s.Name)
		}
	}
	return nil
}

// overHTTP returns the HTTP canary with this name. It starts the canary on the first call.
func (r *restored) overHTTP(name string) (*canary.Server, error) {
	if r.web[name] == nil {
		server, err := canary.Start(r.token(), canary.Web)
		if err != nil {
			return nil, err
		}
		r.web[name] = server
		r.closers = append(r.closers, server)
	}
	return r.web[name], nil
}

// lack adds a sentence about something that the recording lacks. It ignores a sentence that is already in the list.
func (r *restored) lack(format string, args ...any) {
	what := printable.Line(fmt.Sprintf(format, args...), 300)
	r.lacking = lists.With(r.lacking, what)
}

// token returns the secret that the canary's tool returned in the recorded run.
func (r *restored) token() string { return canary.Token(r.recording.Header().Seed) }

// serveModel starts the model server of a replay. It serves the script in the file script. If script is "", it serves
// the recorded script, or else the script file next to the recording.
func (r *restored) serveModel(job *replay.Player, script, file string, p *agents.Profile,
	log *transcript.Transcript) error {
	var src []byte
	recorded := recordings.Model(r.recording)
	name := file
	if script == "" && recorded != nil {
		src, job.Gates = []byte(recorded.Script.Format()), recorded.Gates
	} else {
		var err error
		if src, err = modelOf(file, script); err != nil {
			return err
		}
		if name = script; name == "" {
			name = scriptOf(file)
		}
	}
	if src == nil {
		places, _ := replay.PlacesOf(r.recording)
		if len(recordings.Prompts(r.recording)) > 0 && (!places.Model || neverAsked(r.recording)) {
			r.lacking = append(r.lacking, "the recording lacks the model's replies, so no model answers: "+
				"record again with record --llm, or name a script with replay --llm FILE")
		}
		return nil
	}
	src = recordings.ModelHere(src, r.recording, r.box.Work, r.box.Home, r.renamed...)
	here := strings.NewReplacer("$WORK", r.box.Work, "$HOME", r.box.Home)
	parsed, err := fakellm.ParseScript(name, src, func(s string) (string, error) {
		if recorded != nil && script == "" {
			return s, nil
		}
		return here.Replace(s), nil
	})
	if err != nil {
		return err
	}
	config, err := scenarios.ModelOf(p)
	if err != nil {
		return err
	}
	config.Script, config.Transcript, config.Seed = parsed, log, r.recording.Header().Seed
	model, err := fakellm.Start(config)
	if err != nil {
		return err
	}
	r.closers = append(r.closers, model)
	r.box.LLM = model.URL()
	job.Prompting = func(session string, n int, text string) {
		model.Begin(fakellm.Prompt{Session: session, Index: n, Text: text})
	}
	job.Release = func(gate string) error {
		_, err := model.Release(gate)
		return err
	}
	if job.Gates == nil { // nothing else would release the script's gates
		return openGates(model, parsed)
	}
	return nil
}
