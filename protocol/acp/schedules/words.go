package schedules

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/sweep"
)

//go:embed acts.txt
var actsOfBoth string

//go:embed acts-v2.txt
var actsOfV2 string

//go:embed answers.txt
var answers string

// acts returns the acts of the tables. The functions here give the flags, conditions and values to which the tables
// refer by name.
func acts(tables ...string) *sweep.Acts[*builder] {
	t := &sweep.Acts[*builder]{Flags: flags, Conditions: conditions(), Values: values(), Parts: parts()}
	for _, table := range tables {
		t.Read(table)
	}
	return t
}

// flags are the properties that an act can have in the tables.
var flags = []string{
	"answers",     // the act is an answer to a permission request, and nothing else is held
	"allows",      // the answer allows the tool call
	"always",      // the answer counts for all later calls
	"late",        // the permission request of a cancelled turn is answered late
	"sticky",      // the act leaves a permit line behind
	"free",        // the model is not held
	"disconnects", // the model's reply breaks off at the point
	"whole",       // the act affects the whole connection, so a session must be open before it
	"kills",       // the process ends, and with it the other session's turn
	"cuts",        // the act cancels the turn
	"swallows",    // the agent may answer a second prompt without working on it
}

func conditions() map[string]func(*builder) bool {
	all := map[string]func(*builder) bool{
		// within: the turn has not ended. let-go: the script can release the turn.
		"within": func(b *builder) bool { return b.Point.Kind < atEnd },
		"let-go": func(b *builder) bool { return b.Point.Kind != atTerminal && !b.Point.Several },
		"open":   func(b *builder) bool { return open(b.Point) },
		"idle":   (*builder).idle,
		// only-tool: the running tool call is the turn's only one.
		"only-tool": func(b *builder) bool { return b.Point.Kind == atTool && b.Point.Alone },
		// at-subagent: the point is after an update about a child.
		"at-subagent": func(b *builder) bool { return b.Point.Kind == atFrame && b.Point.Until[0] == subagent },
		"asking":      func(b *builder) bool { return b.asking },
		"held":        func(b *builder) bool { return b.Held },
		"works":       func(b *builder) bool { return b.works },
		"refused":     func(b *builder) bool { return b.refused },
		"lists":       func(b *builder) bool { return b.Seen.Able["list"] },
		"allows":      func(b *builder) bool { return b.Act.Is("allows") },
		"always":      func(b *builder) bool { return b.Act.Is("always") },
		"state-ends":  func(b *builder) bool { return b.version.stateEnds },
		"harmless": func(b *builder) bool {
			return len(b.effects) == 0 && b.Point.Kind != atRequest && b.asked == 0
		},
		"memorable": func(b *builder) bool {
			return !strings.ContainsAny(b.Seen.Turn.Text.String(), "$@") && b.Seen.End == "end_turn"
		},
		"speaks": (*builder).speaks,
		// foreign: the other session's prompt does not occur in the scenario.
		"foreign": func(b *builder) bool { return !bytes.Contains(b.Script.Text(), []byte(b.otherWords())) },
	}
	for name, kind := range map[string]sweep.PointKind{"write": atWrite, "once": atOnce, "frame": atFrame, "gate": atGate,
		"permission": atPermission, "end": atEnd, "idle": atIdle, "loaded": atLoaded, "second": atSecond} {
		all["at-"+name] = func(b *builder) bool { return b.Point.Kind == kind }
	}
	for _, question := range []string{swallows, clinging, unasked} {
		all[question] = func(b *builder) bool { return b.Probes[question] }
	}
	return all
}

func values() map[string]func(*builder) script.Word {
	text := func(f func(*builder) string) func(*builder) script.Word {
		return func(b *builder) script.Word { return script.Text(f(b)) }
	}
	quoted := func(f func(*builder) string) func(*builder) script.Word {
		return func(b *builder) script.Word { return script.Quote(literal(f(b))) }
	}
	return map[string]func(*builder) script.Word{
		"main":         text(func(b *builder) string { return b.Seen.Session }),
		"named":        func(b *builder) script.Word { return sweep.Optional(b.named()) },
		"session":      (*builder).session,
		"end":          text(func(b *builder) string { return end(b.Seen) }),
		"any-end":      text(func(b *builder) string { return anyEnd(b.Seen) }),
		"stopped":      text((*builder).stopped),
		"closed":       text((*builder).closed),
		"choice":       text(func(b *builder) string { return b.choice }),
		"other-prompt": quoted((*builder).otherWords),
		"prompt":       quoted(func(b *builder) string { return b.Seen.Turn.Text.Raw() }),
		"text":         func(b *builder) script.Word { return script.Quote("^" + literal(b.Seen.Text) + "$") },
	}
}

func parts() map[string]func(*builder, *script.Line) {
	plain := func(f func(*builder)) func(*builder, *script.Line) {
		return func(b *builder, _ *script.Line) { f(b) }
	}
	return map[string]func(*builder, *script.Line){
		"written":       plain((*builder).written),
		"replies":       plain((*builder).replies),
		"finish":        plain((*builder).finish),
		"restart":       plain((*builder).restart),
		"restore":       plain((*builder).restore),
		"release-model": plain(func(b *builder) { b.Release() }),
		"elsewhere":     plain((*builder).elsewhere),
		"untouched":     plain(func(b *builder) { b.untouched(b.Point.Files) }),
		"untouched-any": plain(func(b *builder) { b.untouched(behindAny(b.Seen)) }),
		"once":          func(b *builder, l *script.Line) { b.once(l.Words[0].Raw()) },
		"again":         (*builder).again,
	}
}

// literal returns a regular expression that matches exactly the text s.
func literal(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`\.+*?()|[]{}^`, r) {
			b.WriteByte('\\')
		}
		if r == '\n' {
			b.WriteString(`\n`)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// idle reports whether the turn is over at the point.
func (b *builder) idle() bool {
	return slices.Contains([]sweep.PointKind{atIdle, atLoaded}, b.Point.Kind)
}

// speaks reports whether a pattern can check the text of the turn.
func (b *builder) speaks() bool { return b.Seen.Text != "" && !strings.ContainsAny(b.Seen.Text, "$/") }
