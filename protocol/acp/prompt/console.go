package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mockclient"
)

// Console is the terminal at which a user types. Lines are edited with the package golang.org/x/term, which is a
// dependency already and supports history and completion. Console reads keys only while it asks for a line, and writes
// to Out.
type Console struct {
	In  *os.File
	Out io.Writer

	keys    chan []byte
	rest    []byte       // typed bytes that nobody has read yet
	history term.History // prompts of this session; not stored on disk
}

// read reads typed bytes until ctx ends. One goroutine reads for all callers: if a caller stops waiting, its bytes go
// to the next caller.
func (c *Console) read(ctx context.Context, to []byte) (int, error) {
	if c.keys == nil {
		c.keys = make(chan []byte)
		go func() {
			defer close(c.keys)
			for {
				buf := make([]byte, 1024)
				n, err := c.In.Read(buf)
				if n > 0 {
					c.keys <- buf[:n]
				}
				if err != nil || n == 0 {
					return
				}
			}
		}()
	}
	if len(c.rest) == 0 {
		select {
		case keys, ok := <-c.keys:
			if !ok {
				return 0, io.EOF
			}
			c.rest = keys
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	n := copy(to, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// answer asks for one line. The terminal itself edits the line, so that Ctrl-C remains an interrupt.
func (c *Console) answer(ctx context.Context, question string) (string, error) {
	if _, err := io.WriteString(c.Out, question); err != nil {
		return "", err
	}
	var line []byte
	for {
		var key [1]byte
		if _, err := c.read(ctx, key[:]); err != nil {
			_, _ = io.WriteString(c.Out, "\n")
			return "", err
		}
		if key[0] == '\n' || key[0] == '\r' {
			return string(line), nil
		}
		line = append(line, key[0])
	}
}

// keyboard reads keys while the user edits a line in raw mode. There, Ctrl-C is a key that clears the line, not an
// interrupt.
type keyboard struct {
	ctx context.Context
	*Console
}

func (k keyboard) Write(text []byte) (int, error) { return k.Out.Write(text) }

func (k keyboard) Read(to []byte) (int, error) {
	const ctrlC, ctrlE, ctrlU = 0x03, 0x05, 0x15
	n, err := k.read(k.ctx, to[:max(1, len(to)/2)])
	typed := slices.Clone(to[:n])
	n = 0
	for _, key := range typed {
		if key == ctrlC {
			n += copy(to[n:], []byte{ctrlE, ctrlU}) // go to the end of the line and delete everything before the cursor
			continue
		}
		to[n] = key
		n++
	}
	return n, err
}

// line asks for a prompt. commands returns the words that Tab completes. At the end of the input (Ctrl-D), line
// returns io.EOF.
func (c *Console) line(ctx context.Context, commands func() []string) (string, error) {
	before, err := term.MakeRaw(int(c.In.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(int(c.In.Fd()), before) }()
	t := term.NewTerminal(keyboard{ctx, c}, "> ")
	if width, height, err := term.GetSize(int(c.In.Fd())); err == nil && width > 0 {
		_ = t.SetSize(width, height)
	}
	if c.history == nil {
		c.history = t.History
	}
	t.History = c.history
	t.AutoCompleteCallback = func(line string, at int, key rune) (string, int, bool) {
		if key != '\t' || !strings.HasPrefix(line, "/") {
			return "", 0, false
		}
		line = completed(line[:at], commands()) + line[at:]
		return line, len(line), true
	}
	line, err := t.ReadLine()
	if err == term.ErrPasteIndicator {
		err = nil
	}
	return line, err
}

// completed returns the longest common beginning of all words that begin with begun. If only one word does, the result
// is that word with a space. If none does, the result is begun.
func completed(begun string, words []string) string {
	fits := lists.Where(words, func(w string) bool { return strings.HasPrefix(w, begun) })
	if len(fits) == 0 {
		return begun
	}
	if len(fits) == 1 {
		return fits[0] + " "
	}
	common := slices.Min(fits)
	for last := slices.Max(fits); !strings.HasPrefix(last, common); {
		common = common[:len(common)-1]
	}
	return common
}

// converse asks for prompts and sends them until the input ends. A failed turn does not end the conversation, unless
// the agent has exited.
func (t *Client) converse(ctx context.Context) (string, error) {
	t.screen.tell("help", "Enter sends, Tab completes the agent's commands, Ctrl-C cancels a turn, Ctrl-D or /exit ends")
	t.conversing.Store(true)
	for {
		text, err := t.options.Console.line(ctx, t.slashes)
		switch text = strings.TrimSpace(text); {
		case errors.Is(err, io.EOF), err == nil && text == "/exit" && !slices.Contains(t.slashes(), "/exit"):
			return "end_turn", nil
		case err != nil:
			return "", err
		case text == "":
			continue
		}
		stop, err := t.turn(ctx, text)
		var rpc *mockclient.RPCError
		switch {
		case err != nil && !errors.As(err, &rpc):
			return "", err
		case err != nil:
			stop = "failed: " + err.Error()
		case stop != "end_turn":
			stop = fmt.Sprintf("ended with %q", stop)
		default:
			stop = ""
		}
		t.screen.await(ctx, t.log.Len())
		if stop != "" {
			t.screen.tell("turn", OneLine(stop))
		}
		t.interrupted.Store(0)
		t.late.Store(false)
	}
}

// slashes returns the names in the agent's latest list of slash commands, each with its slash.
func (t *Client) slashes() []string {
	var names []string
	latest := mockclient.Updated("available_commands_update")
	for after := 0; ; {
		o := t.log.Judge(after, -1, latest)
		if after = o.Entry.Seq; after == 0 {
			return names
		}
		if o.Entry.Session == t.session.ID {
			names = nil
			for c := range t.log.At(after).JSON().Path("params.update.availableCommands").Items() {
				names = append(names, "/"+OneLine(c.Get("name").Str()))
			}
		}
	}
}
