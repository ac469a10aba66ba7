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

// Protocol provides the facts about a protocol that are needed to read, replay and serve its recordings.
type Protocol interface {
	serve.Protocol
	transcript.Classifier
	// Version returns the protocol version to write in the headers of transcripts.
	Version() string
	// Facts returns the role of a frame in a replay.
	Facts(e transcript.Entry) Facts
	// About returns the topic of an agent's request. Requests with the same method and topic are interchangeable, in any
	// order.
	About(e transcript.Entry) string
	// Sight returns the part of a frame that an editor shows to its user.
	Sight(e transcript.Entry) Sight
	// Adapt turns an answer to the recorded request then into an answer to the live request now.
	Adapt(answer []byte, then, now transcript.Entry) []byte
	// Writes returns the path and text of a file that a request asks the editor to write. ok is false for any other
	// request.
	Writes(request transcript.Entry) (path, text string, ok bool)
	// Refuse returns the answer to a request that is not in the recording. If always is true, this answer must be used
	// even if the recording answers a similar request.
	Refuse(e transcript.Entry) (answer []byte, always bool)
	// Improvise returns the frames with which an agent responds to a request that is not in the recording.
	Improvise(e transcript.Entry) [][]byte
	// EndTurn changes the answer to a prompt so that it ends a cancelled turn if cancelled is true, or a completed turn
	// if it is false.
	EndTurn(answer []byte, cancelled bool) []byte
	// Side returns the side that sends requests and notifications with a method. It returns "" if the protocol has no
	// such method.
	Side(method string) transcript.Source
	// Fits reports whether result has a member that occurs only in results of this method.
	Fits(method string, result wire.Value) bool
	// HasText reports whether a frame may contain text written by a user or a model.
	HasText(e transcript.Entry) bool
	// Editor returns an editor that does nothing by itself. asked lists the methods of the requests that it will
	// receive.
	Editor(a *transport.Agent, asked []string) Editor
	// Answer returns a value of the editor's answer. name is one of the protocol's special names that checks use. ok is
	// false if the answer lacks the value; known is false if there is no such name.
	Answer(name string, asked, answer transcript.Entry) (value string, ok, known bool)
}

// Editor sends the frames of a recorded editor.
type Editor interface {
	Send(line []byte) (transcript.Entry, error)
	Close(ctx context.Context) transport.Shutdown
}

// Facts describe the role of a frame in a replay. The zero Facts describe a frame without a role.
type Facts struct {
	// Lane is the session of a frame of the editor. It is "" for a frame of the connection, such as the one that opens a
	// session.
	Lane string
	// Dir is the working directory in a request of the editor.
	Dir string
	// Opened is the id of a new session, in the response that creates it. Handed is a text in a response that a later
	// request must repeat.
	Opened, Handed string
	// Loads means that the frame requests the history of its session.
	Loads bool
	// Shows is the kind of content that a frame of the agent shows, or "" if it shows none. What distinguishes the
	// content from others of the same kind. Message identifies the message to which a chunk belongs.
	Shows, What, Message string
	// Chunk means that the agent may split the content at any point. State means that the frame may come at any time.
	Chunk, State bool
	// Item is the id of something that the frame opens in its turn, such as a tool call.
	Item string
	// Agent is the agent's own name; Client is the editor's. At most one is set, and Version is its version.
	Agent, Client, Version string
}

// PlacesOf returns a recording's note about the directories in which the agent ran. listed reports whether the note
// lists the files. Recordings of other tools have no note, and the notes of older recordings list no files.
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

// Directories returns the workspace and the home directory of a recording. If the recording lists no files, the
// workspace is the directory of the first session. If the recording has no home, it is guessed from the path of the
// workspace.
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
	if path.Base(work) == "work" { // the path is that of a scenario's sandbox
		return path.Join(path.Dir(work), "home")
	}
	return ""
}

// Masked returns o with the directories of a recording as directories to mask.
func Masked(p Protocol, t *transcript.Transcript, o golden.Options) golden.Options {
	o.Work, o.Home = Directories(p, t)
	return o
}
