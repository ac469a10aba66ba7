package replay

import (
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// guesser tells who sent a frame from what it says: a method belongs to one
// side, and a response answers a request of the other one.
type guesser struct {
	protocol Protocol
	open     map[wire.ID][]transcript.Entry // requests without an answer
}

func (g *guesser) source(raw []byte) transcript.Source {
	var doc wire.Doc
	f := wire.ClassifyLine(&doc, raw)
	switch f.Kind {
	case wire.Request, wire.Notification:
		if side := g.protocol.Side(f.Method); side != "" {
			return side
		}
		if f.Kind == wire.Request && !g.prompting() {
			return transcript.Editor // nothing runs in which an agent could ask
		}
		return transcript.Agent
	case wire.Response:
		asked := g.open[f.ID]
		if len(asked) == 0 {
			return transcript.Agent
		}
		best := asked[len(asked)-1]
		for _, e := range asked {
			if g.protocol.Fits(e.Method, f.Result) {
				best = e
			}
		}
		return other(best.Source)
	}
	return transcript.Agent // noise is what agents print
}

func (g *guesser) prompting() bool {
	for _, asked := range g.open {
		for _, e := range asked {
			if isPrompt(g.protocol, e) {
				return true
			}
		}
	}
	return false
}

func other(s transcript.Source) transcript.Source {
	if s == transcript.Agent {
		return transcript.Editor
	}
	return transcript.Agent
}

func (g *guesser) note(e transcript.Entry) {
	switch e.Kind {
	case transcript.Request:
		if g.open == nil {
			g.open = map[wire.ID][]transcript.Entry{}
		}
		g.open[e.ID] = append(g.open[e.ID], e)
	case transcript.Response:
		asked := g.open[e.ID]
		for i, q := range asked {
			if q.Seq == e.Ref {
				g.open[e.ID] = append(asked[:i:i], asked[i+1:]...)
			}
		}
	}
}
