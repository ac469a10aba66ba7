package grammar_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/ci/proof"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/grammar"
	"github.com/acp-test/acp-test/protocol/acp/remote"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
)

// asks are the options of a permission.
var asks = []string{"allow_always", "allow_once", "reject_always", "reject_once"}

// capable is an agent with all that the grammar knows of.
func capable() *grammar.Ability {
	a := &grammar.Ability{Able: map[string]bool{"loadSession": true}, Mode: "act", Modes: []string{"plan"},
		Together: true,
		Options:  []grammar.Option{{ID: "model", Current: "big", Values: []string{"small"}}}, Streams: true}
	for _, c := range []string{"resume", "fork", "list", "close", "delete"} {
		a.Able["sessionCapabilities."+c] = true
	}
	a.Login, a.Able["auth.logout"] = "agent", true
	for _, c := range []string{"image", "audio", "embeddedContext"} {
		a.Able["promptCapabilities."+c] = true
	}
	a.Tools = map[string]grammar.Tool{
		"read_file":  {Works: true, Requests: []string{"fs/read_text_file"}},
		"write_file": {Works: true, Tells: true, Choices: asks, Requests: []string{"fs/write_text_file"}},
		"run_shell":  {Works: true, Tells: true, Choices: asks, Requests: []string{"terminal/create"}},
		"ask_user":   {Works: true, Requests: []string{"elicitation/create"}},
	}
	for _, name := range []string{"edit_file", "delete_file", "move_file"} {
		a.Tools[name] = grammar.Tool{Works: true, Tells: true, Choices: asks}
	}
	for _, name := range []string{"mcp", "search"} {
		a.Tools[name] = grammar.Tool{Works: true}
	}
	return a
}

// agents are the abilities for which sessions are drawn: all, none, and those between.
func agents() map[string]*grammar.Ability {
	noTools := capable()
	noTools.Tools = nil
	noWays := capable()
	noWays.Able, noWays.Modes, noWays.Mode, noWays.Options, noWays.Together = nil, nil, "", nil, false
	unasked := capable()
	for name, t := range unasked.Tools {
		t.Choices = nil
		unasked.Tools[name] = t
	}
	return map[string]*grammar.Ability{"all": capable(), "none": {}, "no tools": noTools, "no ways": noWays,
		"unasked": unasked, "over HTTP": networked()}
}

// networked returns the ability of a capable agent that is reached over HTTP and whose events have ids.
func networked() *grammar.Ability {
	a := capable()
	for _, name := range []string{"network", "http", "http.cursors"} {
		a.Able[name] = true
	}
	return a
}

// The network fails only where there is one, and no input ends there.
func TestTroubleOfANetworkIsDrawnWhereThereIsOne(t *testing.T) {
	drawn := func(a *grammar.Ability) (text string) {
		for n := range 200 {
			text += string(grammar.Grammar{Ability: a}.Draw(sweep.Key{Seed: 5, N: n}).Text())
		}
		return text
	}
	network, pipes := drawn(networked()), drawn(capable())
	for _, kind := range remote.Troubles() {
		if line := "\ntrouble " + string(kind) + "\n"; !strings.Contains(network, line) || strings.Contains(pipes, line) {
			t.Errorf("trouble %s is drawn over HTTP: %v, over pipes: %v", kind, strings.Contains(network, line),
				strings.Contains(pipes, line))
		}
	}
	if strings.Contains(network, "\nclose-stdin\n") || !strings.Contains(pipes, "\nclose-stdin\n") {
		t.Error("over a network no input ends, over pipes it does")
	}
}

// A tool counts as working if the model gets its result, even if the editor sees no call.
func TestCallsThatTheEditorDoesNotSee(t *testing.T) {
	for told, works := range map[[2]string]bool{
		{"list it", "listed.txt read.txt"}: true, {"list it", "delete.txt"}: false,
		{"the folder has listed.txt", "the folder has listed.txt"}: false,
	} {
		log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acp.V1().Classifier})
		if err != nil {
			t.Fatal(err)
		}
		log.AppendFrame(0, transcript.Editor, []byte(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":`+
			`{"sessionId":"s","prompt":[{"type":"text","text":"list_folder"}]}}`), 0)
		for _, text := range told {
			log.Event(0, transcript.Model, transcript.ModelRequest, "s", map[string]string{"text": text})
		}
		log.AppendFrame(0, transcript.Agent, []byte(`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`), 0)
		a := grammar.Learn(map[string]*transcript.Transcript{"tools": log})
		if got := a.Tools["list_folder"].Works; got != works {
			t.Errorf("list_folder works: %v, want %v, though the model was told %q", got, works, told)
		}
	}
}

// draws is how many sessions each agent gets.
const draws = 300

func TestEachSessionIsAScenario(t *testing.T) {
	for name, a := range agents() {
		g := grammar.Grammar{Ability: a}
		for n := range draws {
			if !proof.Part(n) {
				continue
			}
			d := g.Draw(sweep.Key{Seed: 7, N: n})
			lints(t, name, d)
			if n%10 == 0 {
				for _, s := range d.Smaller() {
					lints(t, name, s)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}

// lints fails if a session is not a scenario, or one that the linter complains of.
func lints(t *testing.T, agent string, d sweep.DrawnSession) {
	text := d.Text()
	s, err := acp.V1().Parse("drawn", "drawn.txtar", text)
	if err != nil {
		t.Errorf("%s, session %s: %v\n%s", agent, d.Key, err, text)
		return
	}
	for _, m := range acp.V1().Review(s) {
		if !strings.Contains(m.Error(), "split a scenario of more than 60") {
			t.Errorf("%s, session %s: %v\n%s", agent, d.Key, m, text)
		}
	}
}

func TestTheKeyDecidesTheSession(t *testing.T) {
	g := grammar.Grammar{Ability: capable()}
	for n := range 200 {
		if !proof.Part(n) {
			continue
		}
		d := g.Draw(sweep.Key{Seed: 3, N: n, Variant: n % 5})
		k, err := sweep.ParseKey(d.Key.String())
		if err != nil {
			t.Fatal(err)
		}
		if again := g.Draw(k); !bytes.Equal(again.Text(), d.Text()) {
			t.Fatalf("session %s is another one when it is drawn again", d.Key)
		}
		for _, s := range d.Smaller() {
			if k, err := sweep.ParseKey(s.Key.String()); err != nil || !bytes.Equal(g.Draw(k).Text(), s.Text()) {
				t.Fatalf("session %s is another one when it is drawn again: %v", s.Key, err)
			}
		}
	}
	if bytes.Equal(g.Draw(sweep.Key{Seed: 1, N: 1}).Text(), g.Draw(sweep.Key{Seed: 2, N: 1}).Text()) {
		t.Error("another seed draws the same session")
	}
}

// The best of the drafts, as a sweep takes it, covers all pairs within 300 sessions.
func TestSessionsCoverAllPairs(t *testing.T) {
	for name, a := range agents() {
		g := grammar.Grammar{Ability: a}
		pairs := g.Pairs()
		left := map[[2]string]bool{}
		for _, p := range pairs {
			left[p] = true
		}
		fresh := func(d sweep.DrawnSession) (n int) {
			for _, p := range d.Covers {
				if left[p] {
					n++
				}
			}
			return n
		}
		for n := 0; n < 300 && len(left) > 0; n++ {
			var best sweep.DrawnSession
			for v := 0; v < 16 || fresh(best) == 0 && v < 64; v++ { // as explore does
				if d := g.Draw(sweep.Key{Seed: 1, N: n, Variant: v}); v == 0 || fresh(d) > fresh(best) {
					best = d
				}
			}
			for _, p := range best.Covers {
				delete(left, p)
			}
		}
		if len(left) > 0 {
			t.Errorf("%s: %d of %d pairs are in none of 300 sessions: %q", name, len(left), len(pairs),
				slices.Collect(maps.Keys(left)))
		}
	}
}

func TestWrongKeys(t *testing.T) {
	for _, text := range []string{"", "1", "1.2", "a.b.c", "1.2.3-", "1.2.3-A", "1.2.3 "} {
		if _, err := sweep.ParseKey(text); err == nil || !strings.Contains(err.Error(), "SEED.NUMBER.DRAFT") {
			t.Errorf("ParseKey(%q): got %v", text, err)
		}
	}
}
