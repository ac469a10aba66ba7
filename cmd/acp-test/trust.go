package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/canary"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/refagent"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
)

// inert lists the recorded variables that a replay may set even if the recording is not trusted.
var inert = []string{refagent.EnvAuth, refagent.EnvFork}

// runs returns the sorted names of recorded variables that are not inert: they could make the agent run a program.
func runs(set map[string]string) (names []string) {
	return lists.Where(slices.Sorted(maps.Keys(set)), func(name string) bool { return !slices.Contains(inert, name) })
}

// settings returns the paths of the recorded files of HOME, without those that the profile created.
func settings(files []workspace.Listed) (names []string) {
	mine := lists.Where(files, func(f workspace.Listed) bool { return !f.Profile })
	return lists.Map(mine, func(f workspace.Listed) string { return f.Path })
}

// keepBack withholds the recorded variables and HOME files of an untrusted recording from the agent. They could name
// programs to run.
func (r *restored) keepBack(places *workspace.Manifest) {
	r.set = maps.Clone(places.Set)
	if kept := runs(places.Set); kept != nil {
		r.lack("the agent does not get the recorded variables %s; --trust FILE passes them", strings.Join(kept, ", "))
		maps.DeleteFunc(r.set, func(name, _ string) bool { return slices.Contains(kept, name) })
	}
	if kept := settings(places.HomeFiles); kept != nil {
		r.lack("the agent does not get the recorded HOME files %s; --trust FILE passes them", strings.Join(kept, ", "))
	}
	places.HomeFiles = nil
}

// confine returns a function that makes each line of an untrusted recording's editor safe to send.
func (r *restored) confine() func([]byte) ([]byte, error) {
	c := recordings.Confinement{Root: r.root, Work: r.box.Work, Server: r.standIn, Outside: r.makeOutside,
		Kept: func(what string) {
			r.lack("the agent does not get %s, which the recording names; --trust FILE passes it", what)
		}}
	return c.Frame
}

// standIn returns the configuration entry of a canary that replaces a recorded MCP server. The entry keeps only the
// server's name.
func (r *restored) standIn(s recordings.Server) ([]byte, error) {
	absent := filepath.Join(r.box.Temp, "no-such-program")
	broken := s.Name == "broken" && s.Command == absent
	if !s.Canary() && !broken {
		r.lack("a stand-in plays the MCP server %s; --trust FILE runs the real one", s.Name)
	}
	if s.Command == "" {
		server, err := r.overHTTP(s.Name)
		if err != nil {
			return nil, err
		}
		return json.Marshal(server.Entry(s.Name))
	}
	command, args := r.box.Self, []string{"canary"}
	if broken {
		command, args = absent, nil
	}
	entry := canary.Stdio(s.Name, r.token(), filepath.Join(r.box.Temp, "canary log"), command, args...)
	if s.As != "" {
		entry.Env = append(entry.Env, mockclient.EnvVariable{Name: s.As, Value: "1"})
	}
	if s.Typed {
		return json.Marshal(struct {
			Type string `json:"type"`
			mockclient.MCPServer
		}{"stdio", entry})
	}
	return json.Marshal(entry)
}

// makeOutside creates a substitute for a recorded folder outside of the workspace. dir must be below the replay's
// root.
func (r *restored) makeOutside(dir string) error {
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return err
	}
	defer root.Close()
	rel, err := filepath.Rel(r.root, dir)
	if err != nil {
		return err
	}
	return root.MkdirAll(rel, 0o755)
}

// trusts returns the set of trusted files, by clean path. It returns an error if trusted contains a name that is not
// in files.
func trusts(files, trusted []string) (map[string]bool, error) {
	of := map[string]bool{}
	for _, name := range trusted {
		if !slices.ContainsFunc(files, func(file string) bool { return filepath.Clean(file) == filepath.Clean(name) }) {
			return nil, fmt.Errorf("--trust %s: the command line does not name this recording", name)
		}
		of[filepath.Clean(name)] = true
	}
	return of, nil
}

// announce tells the user which servers, variables and files a trusted recording gives to the agent.
func (h *host) announce(file string, t *transcript.Transcript) {
	secrets := h.secrets()
	say := func(format string, args ...any) {
		what := secrets.Text(fmt.Sprintf(format, args...))
		fmt.Fprintf(h.err, "acp-test: %s is trusted: %s\n", file, printable.Line(what, 2000))
	}
	for _, s := range recordings.Servers(t) {
		switch {
		case s.Canary():
		case s.Command != "":
			say("the agent may start the MCP server %s: %s", s.Name, quoted(append([]string{s.Command}, s.Args...)))
		case s.URL != "":
			say("the agent may contact the MCP server %s at %s", s.Name, s.URL)
		}
	}
	places, _ := replay.PlacesOf(t)
	for _, what := range slices.Concat(given(places, true), keptBack(t)) {
		say("the agent gets %s", what)
	}
}

// given returns phrases for the variables and the HOME files that a recording gives to its agent. If values is true,
// it includes the variables' values.
func given(places workspace.Manifest, values bool) (list []string) {
	for _, name := range runs(places.Set) {
		what := "the variable " + name
		if values {
			what += "=" + places.Set[name]
		}
		list = append(list, what)
	}
	for _, name := range settings(places.HomeFiles) {
		list = append(list, "the file "+name+" of HOME")
	}
	return list
}

// keptBack returns what a replay of this recording withholds if the recording is not trusted, without MCP servers.
// These are paths outside of the recorded folder, and settings in the editor's frames.
func keptBack(t *transcript.Transcript) (list []string) {
	work, _ := replay.Directories(recordings.V1(), t)
	root := work
	if beside := filepath.Dir(work); strings.Count(beside, "/") > 1 {
		root = beside
	}
	c := recordings.Confinement{Root: root, Work: work,
		Server: func(recordings.Server) ([]byte, error) { return []byte("{}"), nil },
		Kept: func(what string) {
			list = lists.With(list, what)
		}}
	for e := range replay.Frames(t) {
		if e.Source != transcript.Editor {
			continue
		}
		if _, err := c.Frame(e.Raw); err != nil {
			c.Kept(fmt.Sprintf("line #%d: %v", e.Seq, err))
		}
	}
	return list
}

// distrust returns an error that lists everything in a recording that could make the agent start, open or set up
// something. It returns nil if there is nothing of that kind.
func distrust(file string, t *transcript.Transcript) error {
	places, _ := replay.PlacesOf(t)
	list := append(keptBack(t), given(places, false)...)
	for _, f := range places.Files {
		if workspace.Git(f.Path) {
			list = append(list, "the file "+f.Path)
		}
	}
	if list == nil {
		return nil
	}
	return fmt.Errorf("%s: the recording gives the agent %s; if you trust it, use --trust %s", file,
		printable.Line(strings.Join(list, ", "), 1000), file)
}
