package golden

import (
	"iter"

	"github.com/acp-test/acp-test/transcript"
)

// Renderer turns the entries of one protocol into text.
type Renderer interface {
	// Render returns the text of entries for comparison, one entry per line. The
	// canonical form of two runs is the same if and only if they differ at most by
	// an interleaving that the protocol allows.
	Render(entries iter.Seq[transcript.Entry], o Options) string
	// Line returns one line of text for users about an entry from any source. It
	// does not mask ids, paths and times.
	Line(e transcript.Entry) string
}

// Surveyor is a Renderer that must see all entries before it renders the first.
// Survey lets a reader do this while it reads a transcript. The reader passes
// each entry that transcript.Shown yields to see. It then renders the entries
// with surveyed.
type Surveyor interface {
	Survey() (see func(transcript.Entry), surveyed Renderer)
}

// Options are the settings of Render. The zero value selects the canonical
// form, which masks ids, times and software versions.
type Options struct {
	// Exact keeps every chunk of a message, and the order in which frames arrived.
	Exact bool
	// Work, Home and Temp are directories that are shown as $WORK, $HOME and $TMP.
	// Root is their parent directory, shown as $RUN. In a path without its leading
	// slash, the name has no "$".
	Work, Home, Temp, Root string
	// Replace masks text that one agent prints differently in each run. It is
	// applied after directories and session ids have been replaced.
	Replace []Replacement
	// Unordered lists updates and notifications that may come in any order: kinds
	// of updates ("session_info_update") or methods of other notifications. * and
	// ? are wildcards. These entries are shown sorted, at the end.
	Unordered []string
	// Omit lists kinds or methods that are not shown. It has the same format as
	// Unordered.
	Omit []string
	// Values lists members whose values one agent changes in each run. The text
	// shows the values as <any>.
	Values []string
	// Without lists members that are omitted from every object.
	Without []string
	// MergeCalls shows a tool call as one line at its first appearance. The line
	// has the content of all updates of the call.
	MergeCalls bool
}
