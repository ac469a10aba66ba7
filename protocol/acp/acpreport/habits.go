package acpreport

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Habit is a behaviour that version 1 allows and version 2 forbids.
type Habit struct {
	// Requirement is the version 2 requirement that the habit breaks. Does describes what the agent does, and Instead
	// what version 2 requires in its place.
	Requirement, Does, Instead string
	is                         func(e transcript.Entry) bool
}

// Broken is a habit, with the number of times that an agent showed it.
type Broken struct {
	Habit
	Count int
	First string // scenario and entry in which the agent first showed the habit
}

// habits has three lines for each habit: first the requirement and how to detect the habit, then what the agent does,
// then what version 2 has instead.
//
//go:embed habits.txt
var habits string

// AllHabits returns all habits, in the order in which a conversation shows them.
func AllHabits() (all []Habit) {
	lines := strings.Split(strings.TrimSpace(habits), "\n")
	for three := range slices.Chunk(lines, 3) {
		words := strings.Fields(three[0])
		does, instead := strings.TrimSpace(three[1]), strings.TrimSpace(three[2])
		all = append(all, Habit{words[0], does, instead, shows(words[1], words[2])})
	}
	return all
}

// shows returns a function that reports whether an entry shows a habit. how is the kind of sign to look for:
//   - answers: what is METHOD.MEMBER, a member that is not empty in the answer to a method.
//   - asks: what is the prefix of a request's method.
//   - shows: what is the type of content in an update.
//   - any other word: what is the kind of an update; _chunk stands for chunks without a message id.
func shows(how, what string) func(transcript.Entry) bool {
	return func(e transcript.Entry) bool {
		v, update := e.JSON(), acpframe.Update(e)
		switch how {
		case "answers":
			method, member, _ := strings.Cut(what, ".")
			v = v.Path(strings.TrimSuffix("result."+member, "."))
			return e.Kind == transcript.Response && e.Method == method && v.Exists() && !v.IsNull() &&
				(v.Kind() != wire.Array || v.Len() > 0)
		case "asks":
			return e.Kind == transcript.Request && strings.HasPrefix(e.Method, what)
		case "shows":
			return v.Path("params.update.content").Find("type", what).Exists()
		}
		anonymous := what == "_chunk" && strings.HasSuffix(update, what) && !v.Path("params.update.messageId").Exists()
		return update == what || anonymous
	}
}

// Seen adds to list the habits that a version 1 transcript shows. A nil list stands for all habits, not yet seen.
func Seen(list []Broken, scenario string, t *transcript.Transcript) []Broken {
	if list == nil {
		list = append(list, lists.Map(AllHabits(), func(h Habit) Broken { return Broken{Habit: h} })...)
	}
	for e := range t.All() {
		if e.Source != transcript.Agent {
			continue
		}
		for i := range list {
			if h := &list[i]; h.is(e) {
				if h.Count++; h.Count == 1 {
					h.First = fmt.Sprintf("`%s` #%d", scenario, e.Seq)
				}
			}
		}
	}
	return list
}
