//go:build linux

package browser

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

// asks is an agent that says something and then waits for an answer, in a turn that a test so holds open.
const asks = `# An agent that asks.
role agent
on prompt {
	text 'Hello from afar.'
	request _acp-test/still_there '{}' as ALIVE
	await ALIVE within=10m
	text ' And on.'
	end end_turn
}
`

// editor is the side of an editor of a command that is an agent.
type editor struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func editing(t testing.TB, dir string, words ...string) *editor {
	t.Helper()
	c := exec.Command(words[0], words[1:]...)
	c.Dir, c.Stderr = dir, os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	e := &editor{t, c, in, bufio.NewReader(out)}
	t.Cleanup(e.end)
	return e
}

// end is the end of input, which an agent ends at.
func (e *editor) end() {
	_ = e.in.Close()
	_, _ = io.Copy(io.Discard, e.out)
	_ = e.cmd.Wait() // also if that was done before
}

// say sends a message, and reads on until a line has a text.
func (e *editor) say(message, until string) {
	e.t.Helper()
	if _, err := fmt.Fprintln(e.in, message); err != nil {
		e.t.Fatal(err)
	}
	for {
		line, err := e.out.ReadString('\n')
		if err != nil {
			e.t.Fatalf("after %s: %v", message, err)
		}
		if strings.Contains(line, until) {
			return
		}
	}
}

// What record and serve write is followed while an editor and an agent speak: each thing is on the page before
// the next is said, and the page is never loaded again.
func TestLiveSession(t *testing.T) {
	program := given(t, "ACP_TEST_PROGRAM")
	for name, words := range map[string][]string{
		"record": {program, "record", "--keep-text", "--out", "out/", "--", program, "serve", "-q", "--out", "served",
			"agent.txtar"},
		"serve": {program, "serve", "-q", "--out", "out", "agent.txtar"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "agent.txtar"), []byte(asks), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, sub := range []string{"out", "work"} {
				if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			p := at(t, servingIn(t, dir, program, "ui", "out"))
			p.visit("#/", "nav")
			p.until(`document.body.innerText.includes("There is no transcript here yet.")`)

			e := editing(t, dir, words...)
			e.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`, `"id":1`)
			p.until(shownRows + ` === 1`)
			p.eval(`window.same = true`)
			p.do("opening it", chromedp.Click("#scenarios .case a", chromedp.ByQuery),
				chromedp.WaitVisible(".row.agent", chromedp.ByQuery))
			e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`,
				filepath.Join(dir, "work")), `"id":2`)
			p.until(`document.querySelector(".t-window")?.innerText.includes("session/new")`)

			// A turn that goes on.
			p.do("the state", chromedp.Click("nav.tabs a:nth-child(4)", chromedp.ByQuery),
				chromedp.WaitVisible(".state-view .block", chromedp.ByQuery))
			e.say(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"session-1",`+
				`"prompt":[{"type":"text","text":"Are you there?"}]}}`, `still_there`)
			p.until(`document.querySelector(".state-view")?.innerText.includes("in a turn")`)
			p.until(`document.querySelector(".state-view")?.innerText.includes("_acp-test/still_there of the agent")`)
			p.do("the conversation", chromedp.Click("nav.tabs a:nth-child(3)", chromedp.ByQuery),
				chromedp.WaitVisible(".card.agent", chromedp.ByQuery))
			p.until(`document.querySelector(".conversation")?.innerText.includes("Are you there?")`)
			p.want("what is not said yet",
				p.eval(`document.querySelector(".conversation").innerText.includes("And on.")`), false)

			// Its end.
			e.say(`{"jsonrpc":"2.0","id":"agent-1","result":{}}`, `"id":3`)
			p.until(`document.querySelector(".conversation")?.innerText.includes("Hello from afar. And on.")`)
			p.until(`document.querySelector(".conversation")?.innerText.includes("end_turn")`)
			e.end()
			p.until(`document.querySelector("h1 .v")?.textContent === "pass"`)
			p.until(`document.querySelector(".timeline canvas") !== null && same`)
			p.quiet()
		})
	}
}

// A sweep is followed while it goes on: once the agent has told its name and the scenario ran as it is, further agents
// wait until the page has shown
// that. What it finds leads to the transcript of the finding, on the same page.
func TestLiveSweep(t *testing.T) {
	dir, program := t.TempDir(), given(t, "ACP_TEST_PROGRAM")
	held, err := os.Create(filepath.Join(dir, "held"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	agent := "#!/bin/sh\ncd '" + dir +
		"'\nmkdir named 2>/dev/null || mkdir first 2>/dev/null || flock -s held true\nexec " + program +
		" refagent --fault cancel-end-turn\n"
	for name, text := range map[string]string{"greets.txtar": greets, "agent": agent} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := at(t, servingIn(t, dir, program, "ui", "out"))
	p.visit("#/", "nav")
	p.eval(`window.same = true`)
	c := exec.Command(program, "sweep", "greets.txtar", "-q", "-j", "1", "--out", "out", "--actions", "cancel", "--max",
		"3", "--confirm", "1", "--linger", "50ms",
		"--step-timeout", "10m", "--timeout", "20m", "--", "./agent")
	c.Dir = dir
	var said strings.Builder
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = c.Process.Signal(os.Interrupt)
			_ = c.Wait()
		}
	}()

	// The scenario as it is, and a schedule whose agent waits.
	p.until(shownRows + ` >= 2`)
	p.want("what has a verdict", p.eval(`document.querySelectorAll("#scenarios .v:not(.unjudged)").length`), 0.0)
	p.do("opening the first", chromedp.Click("#scenarios .case a", chromedp.ByQuery),
		chromedp.WaitVisible(".row.agent", chromedp.ByQuery))
	p.until(`document.querySelector("h1 .v").textContent === "pass"`)
	p.do("going up", chromedp.KeyEvent("u"), chromedp.WaitVisible("#scenarios", chromedp.ByQuery))

	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	err = c.Wait()
	if ended = true; c.ProcessState.ExitCode() != 1 {
		t.Fatalf("the sweep: %v\n%s", err, said.String())
	}
	p.until(`[...document.querySelectorAll("nav.main a")].some(a => a.textContent === "Sweep")`)
	p.do("the sweep", chromedp.Click(`//nav//a[text()="Sweep"]`, chromedp.BySearch),
		chromedp.WaitVisible("table.map", chromedp.ByQuery))
	p.do("what it found", chromedp.Click("table.map .fail a", chromedp.ByQuery),
		chromedp.WaitVisible("#problems .problem", chromedp.ByQuery))
	p.until(`document.querySelector("#problems")?.innerText.includes("cancelled")`)
	p.want("the page was loaded once", p.eval(`same`), true)
	p.quiet()
}
