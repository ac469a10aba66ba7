package golden

import (
	"iter"

	"github.com/acp-test/acp-test/transcript"
)

// Renderer turns the entries of one protocol into text.
type Renderer interface {
	// Render returns the text of entries for comparison, one line each. Its
	// canonical form is the same for two runs if they differ only by an
	// interleaving that the protocol allows, and different for any other two.
	Render(entries iter.Seq[transcript.Entry], o Options) string
	// Line returns the text of a single entry, from any source, on one line for
	// users. Ids, paths and times are unchanged.
	Line(e transcript.Entry) string
}

// Surveyor is a Renderer that must see all entries before it renders the first.
// A reader can show it the entries while it reads a transcript file: see takes
// the entries as transcript.Shown yields them. Later, surveyed renders them.
type Surveyor interface {
	Survey() (see func(transcript.Entry), surveyed Renderer)
}

// Options are the settings of Render. The zero value gives the canonical form.
// It masks values that differ in each run: ids, times, software versions.
type Options struct {
	// Exact keeps every chunk and the order of arrival.
	Exact bool
	// Work, Home and Temp are directories shown as $WORK, $HOME and $TMP. Root is
	// the directory that holds them, shown as $RUN. A path without its leading
	// slash begins with WORK, HOME, TMP or RUN instead.
	Work, Home, Temp, Root string
	// Replace masks text that one agent prints differently in each run. It is
	// applied after directories and session ids have been replaced.
	Replace []Replacement
	// Unordered lists kinds of updates ("session_info_update") or methods of
	// other notifications, with * and ?, whose order the profile declares free.
	// They are shown at the end, sorted.
	Unordered []string
	// Omit lists kinds or methods, in the same format, that are not shown.
	Omit []string
	// Values names members whose value one agent changes in each run. The text
	// shows them as <any>.
	Values []string
	// Without names members that are not shown in any object.
	Without []string
	// MergeCalls shows each tool call as one line, where it first appears, with
	// the content of all its updates.
	MergeCalls bool
}
