package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// Protocol is what recordings cannot be read, replayed and served without knowing
// of their protocol.
type Protocol interface {
	serve.Protocol
	transcript.Classifier
	// Version is what the headers of transcripts say.
	Version() string
	// Facts returns the meaning of a frame for a replay.
	Facts(e transcript.Entry) Facts
	// About returns what a request of the agent is about: two of a method that
	// are about the same stand for each other, whatever their order.
	About(e transcript.Entry) string
	// Sight returns what a user sees of a frame.
	Sight(e transcript.Entry) Sight
	// Adapt rewrites the recorded answer to a request for the request of now.
	Adapt(answer []byte, then, now transcript.Entry) []byte
	// Writes returns the file that a request of the agent asks the editor to write.
	Writes(request transcript.Entry) (path, text string, ok bool)
	// Refuse answers a request that the recording has nothing for. Always says
	// that it is refused although the recording answers others like it.
	Refuse(e transcript.Entry) (answer []byte, always bool)
	// Improvise returns what an agent sends that gets a request which the
	// recording has nothing for.
	Improvise(e transcript.Entry) [][]byte
	// EndTurn returns the answer to a prompt as it is after a cancel, or without.
	EndTurn(answer []byte, cancelled bool) []byte
	// Side returns who sends requests and notifications with a method, "" if the
	// protocol has no such method.
	Side(method string) transcript.Source
	// Fits reports whether a result has what only answers to a method have.
	Fits(method string, result wire.Value) bool
	// HasText reports whether a frame may hold what people or models say.
	HasText(e transcript.Entry) bool
	// Editor returns an editor that does nothing by itself. asked are the methods
	// of the requests that it will be sent.
	Editor(a *transport.Agent, asked []string) Editor
	// Answer returns a value of an answer of the editor that has a name of its
	// own in checks, and whether there is one by that name.
	Answer(name string, asked, answer transcript.Entry) (value string, ok, known bool)
}

// Editor is what plays the frames of a recorded editor.
type Editor interface {
	Send(line []byte) (transcript.Entry, error)
	Close(ctx context.Context) transport.Shutdown
}

// Facts are the meaning of a frame for a replay. The zero Facts are those of a frame
// that means nothing.
type Facts struct {
	// Lane is the session that a frame of the editor belongs to; "" for what
	// belongs to the connection, such as the opening of a session.
	Lane string
	// Dir is the directory that a request of the editor names.
	Dir string
	// Opened is the id of a new session, of the answer that has it; Handed a text of the
	// answer that has no meaning but in a later request.
	Opened, Handed string
	// Loads says that the frame asks for the history of its session.
	Loads bool
	// Shows is the kind of content that a frame of the agent shows, "" if it is
	// none; What tells it from others of its kind, Message names the message
	// that a chunk is a piece of.
	Shows, What, Message string
	// Chunk says that how the content is cut means nothing; State that it may
	// come at any time.
	Chunk, State bool
	// Item is the id of something that the frame opens in its turn.
	Item string
	// Agent is the agent's own name, Client that of the editor; Version is that of the one or the other.
	Agent, Client, Version string
}

// PlacesOf is what a recording says of where the agent ran, and whether that includes the
// files. Recordings of other tools have no such note, older ones one without files.
func PlacesOf(t *transcript.Transcript) (m workspace.Manifest, listed bool) {
	for e := range t.Places() {
		var next workspace.Manifest
		if json.Unmarshal(e.Raw, &next) != nil {
			continue
		}
		if m.Work == "" || next.Listed {
			next.Home = cmp.Or(next.Home, m.Home)
			m = next
		}
		if m.Listed {
			return m, true
		}
	}
	return m, false
}

// Directories returns the workspace and the home of a recording. Without a note of the
// files the workspace is that of the first session, and without one of the home that is
// guessed from where homes are.
func Directories(p Protocol, t *transcript.Transcript) (work, home string) {
	if m, listed := PlacesOf(t); listed {
		return m.Work, cmp.Or(m.Home, homeOf(m.Work))
	}
	for e := range t.All() {
		switch {
		case e.Source == transcript.Note && e.Kind == transcript.Places:
			home = e.JSON().Get("home").Str()
		case work == "" && e.Source == transcript.Editor && e.Kind == transcript.Request:
			work = p.Facts(e).Dir
		}
		if work != "" && (home != "" || e.Frame()) {
			break
		}
	}
	if home == "" {
		home = homeOf(work)
	}
	return work, home
}

func homeOf(work string) string {
	for _, parent := range []string{"/home/", "/Users/"} {
		if rest, ok := strings.CutPrefix(work, parent); ok {
			user, _, deeper := strings.Cut(rest, "/")
			if deeper {
				return parent + user
			}
		}
	}
	if strings.HasPrefix(work, "/root/") {
		return "/root"
	}
	if path.Base(work) == "work" { // a scenario's sandbox
		return path.Join(path.Dir(work), "home")
	}
	return ""
}

// Masked adds the directories of a recording to what a text of it does not show.
func Masked(p Protocol, t *transcript.Transcript, o golden.Options) golden.Options {
	o.Work, o.Home = Directories(p, t)
	return o
}
