package golden

import (
	"iter"

	"github.com/acp-test/acp-test/transcript"
)

// Renderer is how a protocol turns entries into text.
type Renderer interface {
	// Render returns the text of entries for comparison, one line each. Its
	// canonical form is the same for any two runs that differ only by an
	// interleaving the protocol allows, and different for any other two.
	Render(entries iter.Seq[transcript.Entry], o Options) string
	// Line returns the text of any one entry, of whatever source, for people:
	// ids, paths and times are as they are. It has no line break.
	Line(e transcript.Entry) string
}

// Surveyor is a Renderer that looks at all entries before it renders the first of them. Who
// reads a transcript from a file has it look meanwhile: see takes the entries as
// transcript.Shown yields them, and surveyed renders them after that.
type Surveyor interface {
	Survey() (see func(transcript.Entry), surveyed Renderer)
}

// Options of Render. The zero value gives the canonical form and masks what
// every agent makes anew: ids, times, versions of the software.
type Options struct {
	// Exact keeps every chunk and the order of arrival.
	Exact bool
	// Work, Home and Temp are directories shown as $WORK, $HOME and $TMP, Root is the one
	// that they lie in, shown as $RUN. Without the slash before it, a path begins with
	// WORK, HOME, TMP or RUN.
	Work, Home, Temp, Root string
	// Replace masks what one agent prints differently in each run. It sees
	// text in which directories and session ids are replaced already.
	Replace []Replacement
	// Unordered are kinds of updates ("session_info_update") or methods of
	// other notifications, with * and ?, that a profile declares free: they
	// stand at the end, sorted.
	Unordered []string
	// Omit are those that are not shown, in the same form.
	Omit []string
	// Values are members whose value one agent makes differently in each run;
	// they show as <any>.
	Values []string
	// Without are members that are not shown, wherever they are.
	Without []string
	// MergeCalls shows each tool call as one line, where it is first told of,
	// with all that its updates said.
	MergeCalls bool
}
