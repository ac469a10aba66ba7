package words

import (
	"context"
	"iter"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// spoken returns the entries without those that the agent sent between a load request and its response.
func spoken(entries iter.Seq[transcript.Entry]) iter.Seq[transcript.Entry] {
	return func(yield func(transcript.Entry) bool) {
		loading := map[string]int{} // Seq of the load request, by session that is being loaded
		for e := range entries {
			switch {
			case e.Source == transcript.Editor && e.Kind == transcript.Request && (e.Method == "session/load" ||
				e.Method == "session/resume" && e.JSON().Path("params.replayFrom").Exists()):
				loading[e.Session] = e.Seq
			case e.Source == transcript.Agent && e.Kind == transcript.Response && loading[e.Session] == e.Ref:
				delete(loading, e.Session)
			}
			if loading[e.Session] == 0 && !yield(e) {
				return
			}
		}
	}
}

func compileSameHistory(l *scenarios.Line) scenarios.Step {
	var refs []string
	for i := range l.Rest {
		s := l.One(i, "live or the name of a load")
		if s != "live" {
			s = l.Ref(i)
		}
		refs = append(refs, s)
	}
	if len(refs) != 2 || refs[1] == "live" {
		return l.Usage(l.Name.Column, "give two arguments: live or the name of a load, then the name of a load")
	}
	return func(_ context.Context, b *scenarios.Branch) error {
		var told [2]mockclient.History
		second, err := b.Entry(l, refs[1])
		if err != nil {
			return err
		}
		for i, ref := range refs {
			first, last := 1, second.Seq-1
			if ref != "live" {
				load, err := b.Entry(l, ref)
				if err != nil {
					return err
				}
				first, last = load.Seq, b.AnswerTo(load.Seq)
			}
			entries := b.Transcript().Between(first, last)
			if ref == "live" {
				entries = spoken(entries)
			}
			told[i] = mockclient.FoldHistory(entries, second.Session)
		}
		if diff := mockclient.Same(told[0], told[1]); diff != "" {
			err := b.Back(l, true, "the same conversation", "a different one")
			err.(*scenarios.Miss).Failure.Diff = b.Plain(diff)
			return err
		}
		return nil
	}
}
