package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
)

type running struct {
	id, step string
	since    time.Time
}

// tick updates the live line at regular intervals, so that the elapsed time shows if an agent hangs.
func (c *Console) tick() {
	t := time.NewTicker(c.o.Every)
	defer t.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-t.C:
			c.mu.Lock()
			if c.paint(); !c.o.Terminal {
				c.write("      " + c.progress() + "\n")
			}
			c.mu.Unlock()
		}
	}
}

// begin starts the updates of the live line, unless they have been started. The caller holds mu.
func (c *Console) begin() {
	if !c.ticks && (c.o.Terminal || !c.o.Quiet) {
		c.ticks = true
		c.ticking.Go(c.tick)
	}
	c.paint()
}

// Started shows that a scenario has started.
func (c *Console) Started(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = append(c.running, running{id: id, since: c.o.Now()})
	c.begin()
}

// Phase shows work other than running scenarios, such as a sweep: its name, the number of finished steps (done), the
// number of all steps (total, 0 if unknown), and the current step (now).
func (c *Console) Phase(name string, done, total int, now string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase = name; total > 0 {
		c.phase += fmt.Sprintf("  %d/%d", done, total)
	}
	if now != "" {
		c.phase += "  " + harmless(firstLine(now))
	}
	c.begin()
}

// Step shows the current step of a running scenario.
func (c *Console) Step(id, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.running {
		if c.running[i].id == id {
			c.running[i].step = harmless(firstLine(text))
		}
	}
	if c.o.Verbose && !c.o.Terminal {
		c.print(fmt.Sprintf("      %s: %s\n", id, harmless(firstLine(text))))
	}
}

// Close removes the live line. It is for a run that has no summary.
func (c *Console) Close() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.ticking.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	c.running, c.o.Terminal, c.ticks = nil, false, true
}

// Say writes a text above the live line.
func (c *Console) Say(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.print(text)
}

// print writes lines above the live line.
func (c *Console) print(s string) {
	c.clear()
	if c.wraps {
		s = hang(s, c.o.Width())
	}
	c.write(s)
}

func (c *Console) write(s string) {
	if _, err := io.WriteString(c.w, s); err != nil && c.err == nil {
		c.err = err
	}
}

func (c *Console) clear() {
	if c.live {
		c.write("\r\x1b[K")
		c.live = false
	}
}

// paint writes the live line again. It shortens the line to the terminal's width, because parts of a wrapped line
// would stay on the screen.
func (c *Console) paint() {
	if c.o.Terminal {
		c.write("\r" + fit(c.progress(), c.o.Width()-1) + "\x1b[K")
		c.live = true
	}
}

// progress returns the text of the live line: the elapsed time, the number of finished scenarios, and the running
// scenarios.
func (c *Console) progress() string {
	if c.phase != "" {
		return short(c.o.Now().Sub(c.start)) + "  " + c.phase
	}
	n := c.counts
	done := fmt.Sprint(n.Total)
	if c.o.Total > 0 {
		done = fmt.Sprintf("%d/%d", n.Total, c.o.Total)
	}
	line := fmt.Sprintf("%s  %s", short(c.o.Now().Sub(c.start)), done)
	for _, p := range []struct {
		n    int
		what string
	}{{n.Fail, "fail"}, {n.Error, "error"}, {n.Inconclusive, "inconclusive"}, {n.Skip, "skip"}} {
		if p.n > 0 {
			line += fmt.Sprintf("  %d %s", p.n, p.what)
		}
	}
	for _, r := range c.running {
		part := "  " + r.id
		if r.step != "" {
			part += ": " + r.step
		}
		if d := c.o.Now().Sub(r.since); d >= time.Second {
			part += " " + short(d)
		}
		line += part
	}
	return line
}

// fit shortens a line to a number of columns. Wide characters, such as Chinese ones, count as two columns.
func fit(line string, columns int) string {
	used := 0
	for i, r := range line {
		w := 1
		if r >= 0x1100 {
			w = 2
		}
		if used+w > max(columns, 1) {
			return line[:i]
		}
		used += w
	}
	return line
}

var (
	painted = lazy.Regexp(`\x1b\[[0-9;]*m`)
	begins  = lazy.Regexp(`^ *\S+(?: \S+)*? {2,}`) // the label at a line's beginning
)

// hang wraps lines at spaces to a number of columns. It indents continuation lines to the column at which the line's
// text begins. It does not wrap texts that users copy, such as commands.
func hang(text string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		plain := painted().ReplaceAllString(line, "")
		indent := len(plain) - len(strings.TrimLeft(plain, " "))
		label := begins().FindString(plain)
		if indent < 12 && label != "" {
			indent = len(label)
		}
		if indent > columns/2 {
			indent = 6
		}
		copied := slices.Contains([]string{"run again", "evidence"}, strings.TrimSpace(label))
		room := columns + len(line) - len(plain)
		for head := fit(line, room); head != line && !copied; head = fit(line, room) {
			at := strings.LastIndexByte(line[:len(head)+1], ' ')
			if at < 0 || len(strings.TrimRight(painted().ReplaceAllString(line[:at], ""), " ")) <= indent {
				break // the word is longer than the line
			}
			b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
			line, room = strings.Repeat(" ", indent)+strings.TrimLeft(line[at:], " "), columns
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
