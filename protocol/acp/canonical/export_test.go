package canonical

import (
	"iter"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/transcript"
)

// Whole is Render of version 1, or 2, for which nothing settles before the end.
func Whole(v2 bool, entries iter.Seq[transcript.Entry], o golden.Options) string {
	never := func(*reader, transcript.Entry) bool { return false }
	return renderer{v2: v2}.render(entries, o, never)
}

// Parts is how many times something settles.
func Parts(v2 bool, entries iter.Seq[transcript.Entry], o golden.Options) (n int) {
	renderer{v2: v2}.render(entries, o, func(r *reader, e transcript.Entry) bool {
		settled := r.settled(e)
		if settled {
			n++
		}
		return settled
	})
	return n
}
