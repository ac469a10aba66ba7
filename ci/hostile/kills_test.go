//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acp-test/acp-test/transcript"
)

var (
	kills    = flag.Int("kills", 10, "how often acp-test is killed")
	killSeed = flag.Uint64("kill-seed", uint64(time.Now().UnixNano()),
		"the seed of the commands, agents and moments of the kills")
)

// Killed at any moment, whatever its agent has started or stopped, acp-test leaves no
// process and no directory behind, and what a recorded agent and its editor received of each
// other is in the recording.
func TestKills(t *testing.T) {
	l := newLab(t)
	random := rand.New(rand.NewPCG(*killSeed, 0))
	t.Logf("-kill-seed %d", *killSeed)
	dir := t.TempDir()
	script := filepath.Join(dir, "kill.txtar")
	if err := os.WriteFile(script, []byte("# A turn.\nprompt Hello.\nawait turn\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	all := families()
	recorded := filepath.Join(dir, "recorded.jsonl")
	l.record(t, dir, recorded, all[0].name, 3)
	tally := map[string]int{}
	for i := range *kills {
		family := all[random.IntN(len(all))].name
		commands := []string{"run", "sweep", "replay", "editors", "record"}
		command := commands[i%len(commands)]
		at := t.TempDir()
		var seen int
		if command == "record" {
			seen = l.record(t, at, filepath.Join(at, "recording.jsonl"), family, random.IntN(400))
		} else {
			words := map[string][]string{
				"run":     {"run", script},
				"sweep":   {"sweep", script, "--max", "500", "--repro", filepath.Join(at, "repro")},
				"replay":  {"replay", recorded, "--repeat", "50"},
				"editors": {"editors"},
			}[command]
			words = append(words, "--out", filepath.Join(at, "out"), "--", l.agent)
			if command == "editors" {
				words = append(words, "editor", family, "{agent}")
			} else {
				words = append(words, family)
			}
			c := l.command(at, words...)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond) // the moment is any
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		l.gone(t, at, fmt.Sprintf("kill %d, of %s with %s", i+1, command, family))
		tally[command]++
		if t.Failed() {
			return
		}
		if command == "record" {
			tally["frames received"] += seen
		}
		_ = os.RemoveAll(at)
	}
	t.Logf("killed, and nothing is left: %v", tally)
}

// command is acp-test with a temporary directory of its own below dir.
func (l lab) command(dir string, words ...string) *exec.Cmd {
	temp := filepath.Join(dir, "tmp")
	_ = os.MkdirAll(temp, 0o755)
	c := exec.Command(l.tool, words...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + temp, "HOSTILE_API_KEY=" + key}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

// gone waits until nothing of a run is left, and fails after a minute: keepers need a
// moment after the death of acp-test.
func (l lab) gone(t *testing.T, dir, what string) {
	t.Helper()
	var left []string
	for range 6000 {
		left = append(processesOf(l.agent), processesOf(l.tool)...)
		temp, _ := os.ReadDir(filepath.Join(dir, "tmp"))
		for _, d := range temp {
			left = append(left, d.Name())
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	l.end()
	t.Errorf("%s: left are %q", what, left[:min(len(left), 5)])
}

// record plays an editor with an agent that is recorded, kills acp-test when the agent
// has sent so many frames, and holds what came on either side against the recording. It
// returns how many frames came.
func (l lab) record(t *testing.T, dir, file, family string, frames int) int {
	t.Helper()
	c := l.command(dir, "record", "--out", file, "--", l.agent, family)
	delivered := filepath.Join(dir, "delivered")
	c.Env = append(c.Env, "HOSTILE_RECEIVED="+delivered)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for i, frame := range []string{
		`"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}`,
		`"method":"session/new","params":{"cwd":` + quote(dir) + `,"mcpServers":[]}`,
		`"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"Hello."}]}`,
	} {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,%s}`+"\n", i, frame)
	}
	// The agent reads these after its turn, and before it, if it has any.
	go func() {
		for i := 3; ; i++ {
			if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"x","params":{}}`+"\n", i); err != nil {
				return
			}
		}
	}()
	var received [][]byte
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		if received = append(received, line); len(received) == frames+1 {
			_ = c.Process.Kill() // what has come by then is read to its end
		}
	}
	_, _ = io.Copy(io.Discard, out)
	_ = c.Wait()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range secretForms(key) {
		if bytes.Contains(raw, []byte(form)) {
			t.Errorf("the secret is in the recording: %s", name)
		}
	}
	log, err := transcript.Load(bytes.NewReader(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[transcript.Source][]string{}
	for e := range log.All() {
		if e.Frame() {
			kept[e.Source] = append(kept[e.Source], mark(e.Raw))
		}
	}
	raw, _ = os.ReadFile(delivered) // none, if nothing came
	sent := bytes.SplitAfter(raw, []byte("\n"))
	sent = sent[:len(sent)-1]
	for from, lines := range map[transcript.Source][][]byte{transcript.Agent: received, transcript.Editor: sent} {
		for i, line := range lines {
			if in := kept[from]; i >= len(in) || in[i] != mark(line) {
				t.Errorf("frame %d of %d of the %s, %.200s, is not in the recording, which has %d", i+1, len(lines),
					from,
					line, len(in))
				break
			}
		}
	}
	return len(received) + len(sent)
}

// mark is what tells a frame from others: its id, or the number in its text.
func mark(line []byte) string {
	var m struct {
		ID     json.RawMessage
		Params struct {
			Update struct{ Content struct{ Text string } }
		}
	}
	_ = json.Unmarshal(line, &m)
	number, _, _ := strings.Cut(m.Params.Update.Content.Text, " ")
	return string(m.ID) + number
}

// processesOf lists the living processes of a program.
func processesOf(program string) (all []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		p, err := os.Readlink(dir + "/exe")
		if err != nil || strings.TrimSuffix(p, " (deleted)") != program {
			continue
		}
		if state, _ := os.ReadFile(dir + "/stat"); strings.Contains(string(state), ") Z ") {
			continue
		}
		words, _ := os.ReadFile(dir + "/cmdline")
		all = append(all, filepath.Base(dir)+" "+strings.ReplaceAll(string(words), "\x00", " "))
	}
	slices.Sort(all)
	return all
}
