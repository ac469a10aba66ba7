package golden

import (
	"iter"

	"github.com/acp-test/acp-test/transcript"
)

// Renderer turns the entries of one protocol into text.
type Renderer interface {
	// Render returns the text of entries for comparison, one line each. Its
	// canonical form is the same for any two runs that differ only by an
	// interleaving the protocol allows, and different for any other two.
	Render(entries iter.Seq[transcript.Entry], o Options) string
	// Line returns the text of any one entry, from any source, for people, on one
	// line. Ids, paths and times are unchanged.
	Line(e transcript.Entry) string
}

// Surveyor is a Renderer that must see all entries before it renders the first. A
// reader of a transcript file can let it see them while reading: see takes the
// entries as transcript.Shown yields them, and surveyed renders them afterwards.
type Surveyor interface {
	Survey() (see func(transcript.Entry), surveyed Renderer)
}

// Options of Render. The zero value gives the canonical form. It masks values
// that every agent makes anew: ids, times, software versions.
type Options struct {
	// Exact keeps every chunk and the order of arrival.
	Exact bool
	// Work, Home and Temp are directories shown as $WORK, $HOME and $TMP. Root is
	// the directory that holds them, shown as $RUN. A path without its leading
	// slash begins with WORK, HOME, TMP or RUN instead.
	Work, Home, Temp, Root string
	// Replace masks text that one agent prints differently in each run. In that
	// text, directories and session ids are already replaced.
	Replace []Replacement
	// Unordered are kinds of updates ("session_info_update") or methods of other
	// notifications, with * and ?, whose order a profile declares free. They are
	// shown at the end, sorted.
	Unordered []string
	// Omit are kinds or methods, in the same form, that are not shown.
	Omit []string
	// Values are members whose value one agent makes differently in each run;
	// they show as <any>.
	Values []string
	// Without are members that are not shown, wherever they are.
	Without []string
	// MergeCalls shows each tool call as one line, where it first appears, with
	// the content of all its updates.
	MergeCalls bool
}
