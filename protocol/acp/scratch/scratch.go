// Package scratch is an editor and a model server that a person operates by hand. The person types prompts together
// with the model's replies, answers permission requests, and holds and releases the model. The person can also send
// lines that no editor would send.
package scratch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
)

// Options describe the agent to start. All fields but Step are required.
type Options struct {
	Profile *agents.Profile
	// Box has everything that the agent gets from the host. Its directories are created in Root, which must exist.
	Box  agents.Sandbox
	Root string
	Log  *transcript.Transcript
	// Keeper is the command line with which this program starts as the keeper of the agent's processes.
	Keeper []string
	// Step makes the model wait before each step of its replies.
	Step bool
}

// Scratch is an agent with one session in a workspace of its own. All methods may be called concurrently.
type Scratch struct {
	editor  *mockclient.Editor
	session *mockclient.Session
	log     *transcript.Transcript
	work    string
	step    bool
	web     *http.Server

	mu     sync.Mutex
	models []*fakellm.Server // one for each prompt, the newest last; the first before any prompt
	turn   *mockclient.Turn
}

// patience is how long the agent may take to open a session.
const patience = time.Minute

// Start starts an agent and opens a session with it.
func Start(ctx context.Context, o Options) (s *Scratch, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the agent opened no session in %v", patience))
	defer cancel()
	dirs, err := workspace.MakeDirs(o.Root)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s = &Scratch{log: o.Log, work: dirs.Work, step: o.Step}
	s.web = &http.Server{Handler: http.HandlerFunc(s.model), ReadHeaderTimeout: patience}
	go func() { _ = s.web.Serve(listener) }() // runs until Close
	defer func() {
		if err != nil {
			s.Close(context.WithoutCancel(ctx))
		}
	}()
	if err := s.say("replies: []\n"); err != nil {
		return nil, err
	}
	box := o.Box
	profile, err := o.Profile.Prepare(ctx, agents.Preparation{Sandbox: box, Keeper: o.Keeper})
	if err != nil {
		return nil, err
	}
	box.Work, box.Home, box.Temp, box.LLM = dirs.Work, dirs.Home, dirs.Temp, "http://"+listener.Addr().String()
	command, err := profile.Process(box, o.Keeper)
	if err != nil {
		return nil, err
	}
	agent, err := mockclient.Start(ctx, o.Log, 0, command)
	if err != nil {
		return nil, err
	}
	s.editor = mockclient.NewEditor(agent, mockclient.Options{Policy: mockclient.Always(mockclient.Answer{Hold: true})})
	if _, err := s.editor.Initialize(ctx); err != nil {
		return nil, err
	}
	s.session, err = s.editor.NewSession(ctx, mockclient.SessionOptions{Cwd: box.Work})
	return s, err
}

// model passes a model request of the agent to the current model server.
func (s *Scratch) model(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	now := s.models[len(s.models)-1]
	s.mu.Unlock()
	now.ServeHTTP(w, r)
}

// say starts a model server for a script. The new server replaces the current one, whose open streams continue.
func (s *Scratch) say(text string) error {
	script, err := fakellm.ParseScript("model", []byte(text), func(text string) (string, error) {
		return strings.ReplaceAll(text, "$WORK", s.work), nil
	})
	if err != nil {
		return err
	}
	server, err := fakellm.Start(fakellm.Config{Script: script, Transcript: s.log})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = append(s.models, server)
	return nil
}

// Act is one act of the person.
type Act struct {
	// Do is prompt, answer, cancel, release or raw.
	Do string
	// Text is the text of a prompt, or for raw a line to send unchanged.
	Text string
	// Model is the model's answer to a prompt. It is a text, or a list of replies in the form of a model script, in
	// which $WORK stands for the workspace. Hold makes the model wait before each step.
	Model string
	Hold  bool
	// Request is the Seq of a permission request. Option is the id of the option to select; if it is "", the answer is
	// cancelled.
	Request int
	Option  string
	// Gate is the name of the gate to release. If it is "", the first gate is released.
	Gate string
}

// Do performs an act. It does not wait for the agent's reaction.
func (s *Scratch) Do(ctx context.Context, a Act) error {
	switch a.Do {
	case "prompt":
		return s.prompt(ctx, a)
	case "answer":
		answer := mockclient.Answer{Option: a.Option, Cancelled: a.Option == ""}
		_, err := s.editor.AnswerPermission(a.Request, answer)
		return err
	case "cancel":
		_, err := s.session.Cancel()
		return err
	case "release":
		return s.release(a.Gate)
	case "raw":
		_, err := s.editor.Send([]byte(strings.TrimSpace(a.Text)))
		return err
	}
	return fmt.Errorf("%q is not an action: choose prompt, answer, cancel, release or raw", a.Do)
}

func (s *Scratch) prompt(ctx context.Context, a Act) error {
	if strings.TrimSpace(a.Text) == "" {
		return errors.New("the prompt is empty")
	}
	script, err := spoken(a.Model, a.Hold || s.step)
	if err != nil {
		return err
	}
	if err := s.say(script); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models[len(s.models)-1].Begin(fakellm.Prompt{Session: s.session.ID, Index: 1, Text: a.Text})
	s.turn = s.session.Prompt(ctx, mockclient.Text(a.Text))
	return nil
}

// spoken converts a text, or replies in the form of a model script, to a model script. held makes the model wait
// before each step and at the end.
func spoken(text string, held bool) (string, error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "- ") {
		text = cmp.Or(text, "Done.")
		return (&fakellm.Document{Turns: []fakellm.TurnNode{stepped(fakellm.NewTurn(
			fakellm.NewReply(fakellm.Text(strings.SplitAfterN(text, " ", 12)...))), held)}}).Format(), nil
	}
	d, err := fakellm.ParseDocument("model", []byte("replies:\n"+indented(text)))
	if err != nil {
		return "", err
	}
	if len(d.Turns) == 1 {
		d.Turns[0] = stepped(d.Turns[0], held)
	}
	return d.Format(), nil
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		b.WriteString("  " + line)
	}
	return b.String()
}

// stepped returns a turn with a gate at each place, or t itself if held is false. It adds the gates from the last
// place to the first, so that earlier places do not move.
func stepped(t fakellm.TurnNode, held bool) fakellm.TurnNode {
	if !held {
		return t
	}
	places := t.Places()
	for i, at := range slices.Backward(places) {
		t = t.With(at, fakellm.HoldAt(fmt.Sprintf("step-%d", i+1)))
	}
	return t
}

func (s *Scratch) release(gate string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range slices.Backward(s.models) {
		for _, held := range m.Held() {
			if gate == "" || gate == held {
				_, err := m.Release(held)
				return err
			}
		}
	}
	return errors.New("no gate holds the model's reply")
}

// State tells the person which acts are possible now.
type State struct {
	Session string `json:"session"`
	// InTurn says that a prompt has no response yet.
	InTurn bool `json:"inTurn"`
	// Asked are the permission requests without an answer.
	Asked []Asked `json:"asked"`
	// Held are the names of the gates that hold the model.
	Held []string `json:"held"`
	// Gone says that the agent has exited.
	Gone bool `json:"gone"`
}

// Asked is a permission request of the agent.
type Asked struct {
	Seq     int      `json:"seq"`
	Title   string   `json:"title"`
	Options []Option `json:"options"`
}

// Option is an option of a permission request.
type Option struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// State returns the current state.
func (s *Scratch) State() State {
	st := State{Session: s.session.ID, Asked: []Asked{}, Held: []string{}}
	for _, e := range s.editor.Held() {
		if e.Method != "session/request_permission" {
			continue
		}
		params := e.JSON().Get("params")
		a := Asked{Seq: e.Seq, Title: params.Path("toolCall.title").Str(), Options: []Option{}}
		for o := range params.Get("options").Items() {
			a.Options = append(a.Options, Option{o.Get("optionId").Str(), o.Get("name").Str()})
		}
		st.Asked = append(st.Asked, a)
	}
	_, st.Gone = s.editor.Agent().Exit()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.models {
		st.Held = append(st.Held, m.Held()...)
	}
	if s.turn != nil {
		_, answered := s.turn.Response()
		st.InTurn = !answered && !st.Gone
	}
	return st
}

// Close stops the agent and the model servers.
func (s *Scratch) Close(ctx context.Context) {
	s.mu.Lock()
	models := s.models
	s.mu.Unlock()
	if s.editor != nil {
		s.editor.Close(ctx)
	}
	for _, m := range models {
		m.Close() // nobody needs its open requests any more
	}
	s.web.Close() // its open requests end too
}
