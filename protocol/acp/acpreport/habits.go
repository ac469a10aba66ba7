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
	// Requirement is the version 2 requirement that the habit breaks. Does describes the agent's behaviour, Instead the
	// replacement in version 2.
	Requirement, Does, Instead string
	is                         func(e transcript.Entry) bool
}

// Broken is a habit that an agent showed, and how many times.
type Broken struct {
	Habit
	Count int
	First string // scenario and entry
}

// habits has three lines for each habit: the requirement and how to detect the habit, what the agent does, and what
// version 2 has instead.
//
//go:embed habits.txt
var habits string

// AllHabits returns all habits, in the order of a conversation.
func AllHabits() (all []Habit) {
	lines := strings.Split(strings.TrimSpace(habits), "\n")
	for three := range slices.Chunk(lines, 3) {
		words := strings.Fields(three[0])
		does, instead := strings.TrimSpace(three[1]), strings.TrimSpace(three[2])
		all = append(all, Habit{words[0], does, instead, shows(words[1], words[2])})
	}
	return all
}

// shows returns a function that detects a habit by how: a non-empty member in the answer to a method, a request with
// a method prefix, an update of a kind, or an update with content of a type.
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

// Seen adds to list the habits that a version 1 transcript shows.
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
