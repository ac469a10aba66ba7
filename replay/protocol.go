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

// Protocol has the facts about a protocol that this package needs to read, replay and serve its recordings.
type Protocol interface {
	serve.Protocol
	transcript.Classifier
	// Version returns the version for the headers of transcripts.
	Version() string
	// Facts returns the role of a frame in a replay.
	Facts(e transcript.Entry) Facts
	// About returns the topic of an agent's request. Requests with the same method and topic can stand for each other,
	// whatever their order.
	About(e transcript.Entry) string
	// Sight returns the part of a frame that an editor shows its user.
	Sight(e transcript.Entry) Sight
	// Adapt turns the recorded answer to request then into an answer to the live request now.
	Adapt(answer []byte, then, now transcript.Entry) []byte
	// Writes returns the file that a request of the agent asks the editor to write.
	Writes(request transcript.Entry) (path, text string, ok bool)
	// Refuse returns the answer to a request that is not in the recording. always says that it is refused even if the
	// recording answers a similar request.
	Refuse(e transcript.Entry) (answer []byte, always bool)
	// Improvise returns the frames that an agent sends for a request that is not in the recording.
	Improvise(e transcript.Entry) [][]byte
	// EndTurn returns the answer to a prompt, changed to end a cancelled turn or, if cancelled is false, a completed
	// one.
	EndTurn(answer []byte, cancelled bool) []byte
	// Side returns which side sends requests and notifications with a method, "" if the protocol has no such method.
	Side(method string) transcript.Source
	// Fits reports whether a result has a member that only answers to this method have.
	Fits(method string, result wire.Value) bool
	// HasText reports whether a frame may contain text written by a user or a model.
	HasText(e transcript.Entry) bool
	// Editor returns an editor that does nothing by itself. asked are the methods of the requests that it will
	// receive.
	Editor(a *transport.Agent, asked []string) Editor
	// Answer returns a value of the editor's answer by a special name that checks use. ok reports whether the answer
	// has it, known whether the name exists.
	Answer(name string, asked, answer transcript.Entry) (value string, ok, known bool)
}

// Editor sends the frames of a recorded editor.
type Editor interface {
	Send(line []byte) (transcript.Entry, error)
	Close(ctx context.Context) transport.Shutdown
}

// Facts describe the role of a frame in a replay. The zero Facts describe a frame without a role.
type Facts struct {
	// Lane is the session that a frame of the editor belongs to; "" for frames of the connection, such as the opening
	// of a session.
	Lane string
	// Dir is the directory that a request of the editor names.
	Dir string
	// Opened is the id of a new session, in the answer that contains it. Handed is a text of the answer whose only use
	// is in a later request.
	Opened, Handed string
	// Loads says that the frame asks for the history of its session.
	Loads bool
	// Shows is the kind of content that a frame of the agent shows, "" if it shows none. What distinguishes it from
	// other content of its kind. Message identifies the message that a chunk belongs to.
	Shows, What, Message string
	// Chunk says that the agent may split the content anywhere. State says that the frame may come at any time.
	Chunk, State bool
	// Item is the id of something that the frame opens in its turn, such as a tool call.
	Item string
	// Agent is the agent's own name, Client the editor's. Version is the version of whichever is set.
	Agent, Client, Version string
}

// PlacesOf returns a recording's note on where the agent ran; listed reports whether the note lists the files.
// Recordings of other tools have no note, and the notes of older recordings list no files.
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

// Directories returns the workspace and the home of a recording. Without a list of files, the workspace is the
// directory of the first session. Without a recorded home, the home is guessed from the workspace's path.
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

// Masked adds the directories of a recording to the texts that o masks.
func Masked(p Protocol, t *transcript.Transcript, o golden.Options) golden.Options {
	o.Work, o.Home = Directories(p, t)
	return o
}
