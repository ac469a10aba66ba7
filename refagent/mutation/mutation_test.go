package mutation_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/refagent/mutation"
)

var update = flag.Bool("update", false, "write what comes out to testdata")

// Each file of testdata has rules and a play: what comes in stands at the margin, and what
// comes out of it is indented below.
func TestPlays(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			blocks, err := mutation.Parse("rules", "the-case: does something\n"+string(archive.Files[0].Data))
			if err != nil {
				t.Fatal(err)
			}
			got := played(t, &blocks[0].Mutation, string(archive.Files[1].Data))
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want := string(archive.Files[1].Data); got != want {
				t.Errorf("got\n%swant\n%s(go test -update writes it)", got, want)
			}
		})
	}
}

// played is a play with what comes out of it now.
func played(t *testing.T, m *mutation.Mutation, play string) string {
	p := m.Player()
	waits := map[string][]*mutation.Wait{}
	var b strings.Builder
	for line := range strings.Lines(play) {
		if line[0] == ' ' {
			continue
		}
		b.WriteString(line)
		var out []mutation.Output
		switch word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); word {
		case "-->":
			out = p.Play(mutation.Client, []byte(rest+"\n"), nil)
		case "<--":
			out = p.Play(mutation.Agent, []byte(rest+"\n"), nil)
		case "start":
			out = p.Begin()
		case "end":
			out = p.End()
		case "wake":
			out = p.Wake(waits[rest][0])
			waits[rest] = waits[rest][1:]
		case "#":
		default:
			t.Fatalf("%q is no line of a play", line)
		}
		for _, o := range out {
			arrow := [...]string{"<--", "-->"}[o.To]
			switch {
			case o.Exit:
				b.WriteString("  exit\n")
			case o.Wait != nil:
				name := fmt.Sprint(o.Delay)
				waits[name] = append(waits[name], o.Wait)
				fmt.Fprintf(&b, "  wait %s\n", name)
			case o.Message != nil && o.Raw == nil:
				fmt.Fprintf(&b, "  %s %s", arrow, o.Message.Encode())
			case o.Message != nil:
				fmt.Fprintf(&b, "  %s %s", arrow, o.Raw)
			default:
				fmt.Fprintf(&b, "  %s bytes %q\n", arrow, o.Raw)
			}
		}
	}
	return b.String()
}

// What no rule changes comes out as it came in, also where it is not a message.
func TestWhatIsNotChangedStays(t *testing.T) {
	text := "{\"jsonrpc\" : \"2.0\",\"id\":1.50,\"method\":\"a\"}\r\n\n[1, 2]\nno JSON \xff\n" +
		"{\"id\": 1, \"result\":null}\nlast"
	p := (&mutation.Mutation{}).Player()
	for line := range strings.Lines(text) {
		out := p.Play(mutation.Client, []byte(line), nil)
		if len(out) != 1 || out[0].To != mutation.Agent || string(out[0].Raw) != line {
			t.Fatalf("got %+v, want %q for the agent", out, line)
		}
	}
}

// A mistake in a file is named with its place and what can stand there.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"  drop", "f:1:3: an indented line needs a NAME: SENTENCE line above it"},
		{"a: b\n    drop", "f:2:5: a step needs a rule above it"},
		{"a b", "f:1:1: a block begins with NAME: SENTENCE"},
		{"a: b\na: c", "f:2:1: a is defined twice"},
		{"a: b\n  ==> any", `f:2:3: "==>" begins no rule: a rule begins with -->, <--, start, end or timer`},
		{"a: b\n  else", "f:2:3: else needs a rule after it"},
		{"a: b\n  -->", "f:2:3: --> needs a kind of message after it: request, response, update or any"},
		{"a: b\n  --> words", `f:2:3: "words" is no kind of message`},
		{"a: b\n  --> request", "f:2:3: request needs a name"},
		{"a: b\n  --> any #x", `f:2:3: "#x" is not the number of a message`},
		{"a: b\n  --> any a~[", "f:2:3: a bracket or a quote is not closed"},
		{"a: b\n  --> any a~(", "f:2:3: error parsing regexp: missing closing ): `(`"},
		{"a: b\n  --> any a<b", `f:2:3: time: invalid duration "b"`},
		{"a: b\n  --> any a..b", `f:2:3: "" is no member of a path`},
		{"a: b\n  --> any\n    sing", `f:3:5: "sing" is no step`},
		{"a: b\n  --> any\n    set a", "f:3:5: set needs more words after it"},
		{"a: b\n  --> any\n    drop a", "f:3:5: drop takes no a"},
		{"a: b\n  --> any\n    set a {b}", "f:3:5: {b} is not valid JSON"},
		{"a: b\n  --> any\n    each a", "f:3:5: each needs a step"},
		{"a: b\n  --> any\n    later soon go", `f:3:5: time: invalid duration "soon"`},
	} {
		_, err := mutation.Parse("f", c.text)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}
