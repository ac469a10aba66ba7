// Package schedules tells a sweep what an editor can do in the turns of ACP, versions 1 and 2: the points at which an
// editor can act, the acts at each point, and the lines that must follow.
package schedules

import (
	"slices"
	"strings"

	"github.com/acp-test/acp-test/sweep"
)

// version has the differences between the protocol versions.
type version struct {
	name string // protocol name with which scenarios begin; "" in version 1
	acts *sweep.Acts[*builder]
	// asides has the acts that a sequence adds while turns run.
	asides *sweep.Acts[*orderWriter]
	// renamed maps requirements of version 1 to their ids in this version. The id is "" if this version lacks the
	// requirement.
	renamed map[string]string
	// stateEnds says that an idle state ends a turn, as in version 2. There, the agent answers a prompt when it
	// accepts the prompt.
	stateEnds bool
	// content lists updates whose place in the conversation users see, although the schema counts them as state.
	content []string
}

// V1 returns the description of the turns of ACP version 1 that a sweep needs.
func V1() *sweep.Planner {
	return version{acts: acts(actsOfBoth, answers), content: []string{"tool_call_update"}}.planner()
}

// V2 returns the description of the turns of ACP version 2 that a sweep needs.
func V2() *sweep.Planner {
	return version{
		name: "acp-v2", acts: acts(actsOfBoth, actsOfV2, answers), stateEnds: true,
		renamed: map[string]string{"CLOSE-003": "V2-SES-006", "CLOSE-006": "V2-SES-006", "RCANCEL-003": ""},
		content: []string{"tool_call_update", "state_update", "terminal_update"},
	}.planner()
}

func (v version) planner() *sweep.Planner {
	v.asides = asides()
	p := v.acts.Plan(sweep.Planner{
		Protocol: v.name, Prompt: "prompt", Noun: "turn", Renamed: v.renamed,
		Turns: turns, Natural: natural, Look: look, Points: points,
		Shared: shared, Chain: chain, Doubts: doubts, Doubtful: doubtful, Choose: v.choose, Write: v.write,
		State: func(word string) bool {
			return strings.HasPrefix(word, "_") || strings.HasSuffix(word, "_update") && !slices.Contains(v.content, word)
		},
	}, v.begin, (*builder).lead)
	v.asides.Besides(p, func(o *sweep.Sequence) *orderWriter { return v.following(o, &sweep.Builder{}) })
	return p
}

// begin returns a builder for ACP that adds to b.
func (v version) begin(b *sweep.Builder) *builder {
	return &builder{Builder: b, noted: of(b.Seen), version: v}
}
