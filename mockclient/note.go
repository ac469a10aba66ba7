package mockclient

import "github.com/acp-test/acp-test/transcript"

// Note is what the harness noted about its own decisions: the details of an
// entry of kind transcript.Noted.
type Note struct {
	// Code is for machines: "permission-default", "permission-fallback",
	// "permission-not-offered", "path-refused", "unknown-session", …
	Code string `json:"code"`
	// Text is one sentence for people.
	Text string `json:"text"`
	// Request is the Seq of the entry it is about.
	Request int `json:"request,omitempty"`
	// Refused is the path that was refused because it leaves the session's
	// directories.
	Refused string `json:"refused,omitempty"`
	// Wanted and Chosen are the option kinds of a permission.
	Wanted string `json:"wanted,omitempty"`
	Chosen string `json:"chosen,omitempty"`
	// Inconclusive says that a check which relies on this act cannot give a
	// verdict.
	Inconclusive bool `json:"inconclusive,omitempty"`
}

func (e *Editor) note(session string, r Note) {
	e.t.Event(e.agent.Conn(), transcript.Note, transcript.Noted, session, r)
}
