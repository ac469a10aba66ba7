package golden

import (
	"strings"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Line is the text of any one entry, of whatever source, for people: ids, paths
// and times are as they are. It has no line break.
func Line(e transcript.Entry) string {
	l := line{m: &mask{plain: true}, exact: true}
	switch {
	case e.Frame():
		return l.frame(e, false)
	case e.Kind == transcript.Written:
		l.word("--> written")
		l.details(e.JSON())
		if e.Problem != "" {
			l.word(oneLine(e.Problem))
		}
		return l.String()
	case e.Source == transcript.Process:
		return l.process(e)
	case e.Source == transcript.Stderr:
		l.word("stderr")
		l.text(strings.TrimRight(string(e.Raw), "\r\n"))
		return l.String()
	}
	kind := string(e.Kind)
	if !strings.HasPrefix(kind, string(e.Source)) {
		kind = string(e.Source) + " " + kind
	}
	l.word(oneLine(kind))
	if e.Session != "" {
		l.word(l.m.id(sessionID, e.Session))
	}
	l.details(e.JSON())
	return l.String()
}

// process shows what happened to the agent's process.
func (l *line) process(e transcript.Entry) string {
	switch e.Kind {
	case transcript.StdinClosed:
		l.word("--> end of input")
	case transcript.Signalled:
		l.word("--> signal")
	case transcript.Exited:
		l.word("<-- exit")
	default:
		l.word("process " + oneLine(string(e.Kind)))
	}
	l.details(e.JSON())
	return l.String()
}

// details shows the members of an event's object as key=value.
func (l *line) details(v wire.Value) {
	for key, value := range v.Members() {
		l.key(quoteUnlessWord(key))
		l.b = compact(l.b, l.m, key, value)
	}
}
