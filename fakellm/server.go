package fakellm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/transcript"
)

// Prompt is a text that the editor sends to the agent.
type Prompt struct {
	Session string // ACP session id; "" until the id is known
	Name    string // the session's name in the scenario
	Index   int    // number among the scenario's prompts, from 1
	Text    string
	// Reply is the answer to the prompt, used if the script has no turn for it.
	Reply string
}

// Config configures a server. Script or Improvise is required.
type Config struct {
	Script *Script
	// Improvise, if set, returns the turn for a prompt when it arrives, instead of Script's turns. text is the user's
	// text in the request.
	Improvise func(text string) TurnNode
	// Transcript receives an entry for every event; nil keeps no transcript.
	Transcript *transcript.Transcript
	// Wire is the only wire format that the server accepts; "" accepts all.
	Wire string
	// Tools maps neutral tools to the agent's tools. If nil, the server learns them from the tools that a request
	// offers.
	Tools map[string]Tool
	// Lacking, if set, is called when the script calls a neutral tool that the request does not offer.
	Lacking func()
	// Lanes are the lanes of the agent's profile. The script's lanes take precedence.
	Lanes []Lane
	// Lenient makes the server answer conversations that the real API would
	// refuse.
	Lenient bool
	Seed    int64
	// Prompts are the scenario's prompts. If there are no prompts, neither here nor from Begin, the number of the
	// user's turns in a request selects the turn of the script.
	Prompts []Prompt
	// Listen is the address to listen on; "" means any free port on 127.0.0.1.
	Listen string
	// MaxBody is the maximum size of a request body in bytes; 0 means 32 MiB.
	MaxBody int64
	// WriteTimeout is the timeout of one write to a client. A client that does not read for longer is disconnected. 0
	// means 30 s.
	WriteTimeout time.Duration
}

// Server is a running model server.
type Server struct {
	listening
	cfg      Config
	lanes    []*Lane
	closed   chan struct{}
	handlers sync.WaitGroup
	requests atomic.Int64
	answers  sync.Pool // *answer values, to reuse their memory
	chains   chains

	mu      sync.Mutex
	prompts []Prompt // the prompts of Config or of the script
	begun   []Prompt
	gates   map[string]*gate
	faults  map[faultKey]int
	used    map[*Reply]bool
	wire    string
	learned map[string]string
	lacking map[string]bool
	strange map[string]Strange
}

type faultKey struct {
	key   string
	fault *Fail
}

// Start starts a server that runs until Close. It returns an error if the address cannot be used.
func Start(c Config) (*Server, error) {
	c.Script = cmp.Or(c.Script, &Script{})
	c.MaxBody = cmp.Or(c.MaxBody, 32<<20)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)
	s := &Server{
		cfg: c, closed: make(chan struct{}),
		prompts: c.Prompts, gates: map[string]*gate{}, faults: map[faultKey]int{},
		used: map[*Reply]bool{}, learned: map[string]string{}, lacking: map[string]bool{},
		strange: map[string]Strange{},
	}
	for i := range c.Script.Turns {
		if t := &c.Script.Turns[i]; t.Prompt != "" && len(c.Prompts) == 0 {
			s.prompts = append(s.prompts, Prompt{Index: i + 1, Text: t.Prompt})
		}
	}
	for _, l := range slices.Concat(c.Script.Lanes, c.Lanes) {
		s.lanes = append(s.lanes, &l)
	}
	for _, name := range c.Script.gates {
		s.gates[name] = &gate{open: make(chan struct{})}
	}
	if err := s.listen(cmp.Or(c.Listen, "127.0.0.1:0"), loopback.Guard(s)); err != nil {
		return nil, fmt.Errorf("starting the model server: %w", err)
	}
	return s, nil
}

// Close closes all connections and waits until their handlers have ended. Further calls do nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	select {
	case <-s.closed:
		s.mu.Unlock()
		return nil
	default:
	}
	close(s.closed)
	s.mu.Unlock()
	err := s.shut("model server")
	s.handlers.Wait()
	return err
}

// Begin tells the server that the editor is about to send a prompt. After the first call, the server looks in
// requests only for the prompts that were passed to Begin.
func (s *Server) Begin(p Prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Create a new slice, because requests that are being matched still use the old one.
	begun := make([]Prompt, 0, len(s.begun)+1)
	begun = append(begun, lists.Where(s.begun, func(b Prompt) bool { return b.Index != p.Index })...)
	s.begun = append(begun, p)
}

// known returns the prompts to which a request can belong: those passed to Begin or, if there are none, the
// configured ones.
func (s *Server) known() []Prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.begun) > 0 {
		return s.begun
	}
	return s.prompts
}

// Learned returns the wire format of the first model request, and the agent's
// tool that the server used for each neutral tool.
func (s *Server) Learned() (wire string, tools map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wire, maps.Clone(s.learned)
}

// Lacking returns, sorted, the neutral tools that the script called but the agent did not offer. The server sends
// such calls under the neutral name. If Config.Tools is set, Lacking returns nothing, because the server then learns
// no tools.
func (s *Server) Lacking() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.lacking))
}

func (s *Server) note(neutral, name string, offered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !offered {
		if s.lacking[neutral] = true; s.cfg.Lacking != nil {
			s.cfg.Lacking()
		}
		return
	}
	s.learned[neutral] = name
}

// Strange is a tool in Config.Tools that the agent did not offer to the model when the script called it.
type Strange struct {
	Neutral, Name string
	// Like is an offered tool that seems to do the same, judging by its name and arguments; "" if there is none.
	// Offered contains the names of all offered tools, sorted.
	Like    string
	Offered []string
}

// Strange lists the tools of Config.Tools that the script called and the agent did not offer, sorted by the neutral
// name. MCP tools are left out, because it depends on the MCP server whether the agent offers them.
func (s *Server) Strange() (list []Strange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return lists.Map(slices.Sorted(maps.Keys(s.strange)), func(neutral string) Strange { return s.strange[neutral] })
}

func (s *Server) noteStrange(neutral, name string, r *request) {
	offered := slices.Sorted(slices.Values(r.toolNames()))
	if neutral == "mcp" || len(offered) == 0 || slices.Contains(offered, name) {
		return
	}
	like, _ := resembling(r.tools, neutral)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strange[neutral] = Strange{Neutral: neutral, Name: name, Like: like.name, Offered: offered}
}

// Finish appends an entry for each reply of the script that no request got.
func (s *Server) Finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.cfg.Script.Turns {
		replies := s.cfg.Script.Turns[t].Replies
		for i := range replies {
			if !s.wasUsed(&replies[i]) {
				s.event(transcript.ModelUnused, "",
					object{{"turn", t + 1}, {"reply", i + 1}, {"must", replies[i].Must}, {"line", replies[i].Line}})
			}
		}
	}
}

func (s *Server) wasUsed(r *Reply) bool {
	if s.used[r] {
		return true
	}
	for i := range r.Alternatives {
		if s.wasUsed(&r.Alternatives[i]) {
			return true
		}
	}
	return false
}

// faultApplies counts one use of a fault for a key. It reports whether the fault applies to this request.
func (s *Server) faultApplies(key string, f *Fail) bool {
	if f.Times == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := faultKey{key, f}
	s.faults[k]++
	return s.faults[k] <= f.Times
}

func (s *Server) event(k transcript.Kind, session string, details object) transcript.Entry {
	if s.cfg.Transcript == nil {
		return transcript.Entry{}
	}
	return s.cfg.Transcript.Events(0, transcript.Model, k, session, appendJSON(make([]byte, 0, 256), details))
}

// confidential reports whether a header's value must not be recorded.
func confidential(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "set-cookie",
		"openai-organization", "openai-project":
		return true
	}
	return secret.Name(name)
}

// headerTimeout is the time that a client has to send the headers of a request.
const headerTimeout = 10 * time.Second

// listening is an HTTP server with its own address.
type listening struct {
	listener net.Listener
	http     *http.Server
	serving  sync.WaitGroup
}

// listen serves a handler on an address until shut is called.
func (s *listening) listen(address string, h http.Handler) (err error) {
	if s.listener, err = net.Listen("tcp", address); err != nil {
		return err
	}
	s.http = &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ErrorLog: log.New(io.Discard, "", 0)}
	s.serve(s.listener)
	return nil
}

// Serve accepts connections from an additional listener until Close, which also closes the listener. From then on,
// each connection serves only one request. With kept-alive connections, a client could later reuse a dead connection
// after another server took over the address, and see a failure.
func (s *listening) Serve(l net.Listener) {
	s.http.SetKeepAlivesEnabled(false)
	s.serve(l)
}

func (s *listening) serve(l net.Listener) {
	s.serving.Go(func() { _ = s.http.Serve(l) }) // Serve returns ErrServerClosed after shut
}

// shut closes the server and its connections. what names the server in an error.
func (s *listening) shut(what string) error {
	err := s.http.Close()
	s.serving.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing the %s: %w", what, err)
	}
	return nil
}

// URL returns the base URL of the server, without a slash at its end.
func (s *listening) URL() string { return "http://" + s.listener.Addr().String() }

func (s *listening) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }
