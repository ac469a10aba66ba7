// Package canary is an MCP server with a tool that reports its use. A test names
// the server in session/new and lets the model call the tool. It then knows
// whether the session's servers really reached the agent: each contact is a
// Sighting, and the tool's result carries a word that nobody can guess.
package canary

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/mockclient"
)

// Tool is the name of the tool. It takes a text and answers "TOKEN: text".
const Tool = "canary_sing"

// Rest is the name of a tool without arguments. A call of it is a Sighting with
// its name as the text.
const Rest = "canary_rest"

// Texts for which the tool behaves differently. Crash ends a server over stdio at
// once. Hang makes every server wait until the call is cancelled or the
// connection ends. Fail makes the tool report a failure. Silent makes its result
// empty. Picture adds an image after the text. A text that begins with Late makes
// the call take a second, even if it is cancelled.
const (
	Crash   = "crash"
	Hang    = "hang"
	Fail    = "fail"
	Silent  = "silent"
	Picture = "picture"
	Late    = "late"
)

// dot is a picture of one pixel.
var dot = []byte("\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0d" +
	"IHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU" +
	"\x00\x00\x00\x0aIDATx\xdac`\x00\x00\x00\x02\x00\x01\xe5'\xde\xfc\x00\x00\x00\x00IEND\xaeB`\x82")

// Variable and Header carry the token to a server over stdio and over HTTP: the
// agent must pass them on as session/new named them. A server over stdio also
// gets its own HOME, which the agent's HOME must not replace.
const (
	Variable = "CANARY_TOKEN"
	Header   = "X-Canary-Token"
)

// Odd is the variable that tells a server over stdio that it gets the additions
// of Oddly.
const Odd = "CANARY_ODD"

// The additions of Oddly.
const (
	empty   = "CANARY_EMPTY"
	letters = `a=b "c" 'd' \ü`
)

var further = []string{"two words", "", `it's "quoted" \`}

// Oddly returns s with further arguments and with variables that are empty or
// have unusual characters. The agent must pass all of them on unchanged.
func Oddly(s mockclient.MCPServer) mockclient.MCPServer {
	s.Args = slices.Concat(s.Args, further)
	s.Env = append(slices.Clone(s.Env), mockclient.EnvVariable{Name: empty},
		mockclient.EnvVariable{Name: Odd, Value: letters})
	return s
}

// home is the name of a server's HOME folder. It has a space, as users' folders
// may.
const home = "canary home"

// number is the prefix of an environment variable that only one server over
// stdio gets. The variable named by mine tells the server which one.
const (
	number = "CANARY_NUMBER_"
	mine   = "CANARY_MINE"
)

// Numbered returns s with a variable that no other server has. A server that has
// the variable of another one was started with more than the editor gave.
func Numbered(s mockclient.MCPServer, n int) mockclient.MCPServer {
	name := number + strconv.Itoa(n)
	s.Env = append(slices.Clone(s.Env), mockclient.EnvVariable{Name: name, Value: "1"},
		mockclient.EnvVariable{Name: mine, Value: name})
	return s
}

// numbered is how many of these variables a server looks for.
const numbered = 64

// stray returns the variable of another server that lookup finds, "" if it finds
// none.
func stray(lookup func(string) (string, bool)) string {
	own, _ := lookup(mine)
	for n := range numbered {
		name := number + strconv.Itoa(n+1)
		if _, found := lookup(name); found && name != own {
			return name
		}
	}
	return ""
}

// Slow is the variable that, if set, makes a server over stdio delay its answer
// to the first greeting.
const Slow = "CANARY_SLOW"

// Stubborn is the variable that, if set, makes a server over stdio keep running
// after the end of its input.
const Stubborn = "CANARY_STUBBORN"

// staying is the maximum time that a stubborn server keeps running; a signal
// ends it sooner.
const staying = time.Minute

// Other is the variable that, if set, makes a server over stdio answer with
// another token.
const Other = "CANARY_OTHER"

// Paged is the variable that, if set, makes a server over stdio list its tools in
// pages of one.
const Paged = "CANARY_PAGED"

// Ways are the variables that change how a server over stdio behaves, each by its
// presence.
var Ways = []string{Slow, Stubborn, Other, Paged}

// slowness is the delay of a slow server: longer than an agent needs for a turn
// without the server, shorter than any agent waits for a server.
const slowness = time.Second

// Sighting is one contact with the server.
type Sighting struct {
	// What is "initialized" (an MCP client shook hands; once for each process of
	// a server over stdio), "listed" (it asked for the tools, or for their first
	// page), "called", or "left" (it gave up a call with the text Hang, by a
	// notification or by the end of the connection).
	What string `json:"what"`
	// Text is the argument of a call, and Said the text of its result; "" if the
	// result has none or reports a failure.
	Text string `json:"text,omitempty"`
	Said string `json:"said,omitempty"`
	// Open reports whether the server answers the call only once it is given up.
	Open bool `json:"open,omitempty"`
	// Token reports whether the token and its additions arrived, by the variable
	// or the header.
	Token bool `json:"token"`
	// Stray is a variable that the agent set although the editor gave it for
	// another server.
	Stray string `json:"stray,omitempty"`
}

// greetings are the requests with which clients open a connection. The first is
// as old as MCP, the second is from versions of MCP without a session.
var greetings = []string{"initialize", "server/discover"}

// Tools are the names of the tools, in the order in which the server lists them.
var Tools = []string{Rest, Tool}

func newServer(
	token string, page int, arrived func(context.Context, mcp.Request) bool, see func(Sighting),
) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "canary", Version: "1"}, &mcp.ServerOptions{PageSize: page})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			switch {
			case slices.Contains(greetings, method):
				see(Sighting{What: "initialized", Token: arrived(ctx, r)})
			case method == "tools/list" && firstPage(r):
				see(Sighting{What: "listed", Token: arrived(ctx, r)})
			}
			return next(ctx, method, r)
		}
	})
	type song struct {
		Text string `json:"text" jsonschema:"any text"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: Tool, Description: "Answers with the text it is given, and a word of its own."},
		func(ctx context.Context, r *mcp.CallToolRequest, in song) (*mcp.CallToolResult, any, error) {
			text := token + ": " + in.Text
			s := Sighting{What: "called", Text: in.Text, Open: in.Text == Hang, Token: arrived(ctx, r)}
			if !slices.Contains([]string{Crash, Hang, Fail, Silent}, in.Text) {
				s.Said = text
			}
			see(s)
			if in.Text == Hang {
				<-ctx.Done()
				see(Sighting{What: "left", Text: Hang, Token: s.Token})
				return nil, nil, ctx.Err()
			}
			if strings.HasPrefix(in.Text, Late) {
				time.Sleep(slowness)
			}
			said := []mcp.Content{&mcp.TextContent{Text: text}}
			switch in.Text {
			case Silent:
				said = []mcp.Content{}
			case Picture:
				said = append(said, &mcp.ImageContent{Data: dot, MIMEType: "image/png"})
			}
			return &mcp.CallToolResult{Content: said, IsError: in.Text == Fail}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: Rest, Description: "Takes nothing, and answers with a word of its own."},
		func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			said := token + " at rest"
			see(Sighting{What: "called", Text: Rest, Said: said, Token: arrived(ctx, r)})
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil, nil
		})
	return server
}

// firstPage reports whether a request for the tools names no page.
func firstPage(r mcp.Request) bool {
	p, ok := r.GetParams().(*mcp.ListToolsParams)
	return !ok || p == nil || p.Cursor == ""
}

// Stdio returns the entry of session/new for a canary that is started as a
// process. command and args are the absolute path and the first arguments of a
// program that calls Main. The canary appends sightings to the file log; see
// Read.
func Stdio(name, token, log string, command string, args ...string) mockclient.MCPServer {
	return mockclient.MCPServer{
		Name: name, Command: command, Args: append(append([]string{}, args...), log),
		Env: []mockclient.EnvVariable{{Name: Variable, Value: token},
			{Name: "HOME", Value: filepath.Join(filepath.Dir(log), home)}},
	}
}

// Token returns the canary's secret word in a run with a seed.
func Token(seed int64) string { return "canary-" + strconv.FormatInt(seed, 10) }

// Main runs the command of Stdio: an MCP server on in and out until in ends or a
// call makes it crash. args are the name of the log file, and the additions of
// Oddly; lookup is os.LookupEnv. As servers do, it reports its start and each
// call on errs. It returns the exit status.
func Main(
	ctx context.Context, args []string, lookup func(string) (string, bool), in io.Reader, out, errs io.Writer,
) int {
	if len(args) == 0 {
		return 2
	}
	getenv := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	log, err := os.OpenFile(args[0], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 1
	}
	defer log.Close()
	signal.Ignore(syscall.SIGPIPE) // an agent may close stderr
	token := getenv(Variable)
	if getenv(Other) != "" {
		token += "-other"
	}
	others := stray(lookup)
	life := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	greeted, crashed, ended := false, make(chan struct{}, 1), make(chan error, 1)
	see := func(s Sighting) {
		mu.Lock()
		defer mu.Unlock()
		if s.What == "initialized" {
			if greeted {
				return // the client retried with the other greeting
			}
			greeted = true
		}
		s.Stray = others
		line, err := json.Marshal(s)
		if err != nil {
			return
		}
		_, _ = log.Write(append(line, '\n'))
		fmt.Fprintf(errs, "canary: %s\n", s.What)
		if s.Text == Crash {
			select {
			case crashed <- struct{}{}:
			default: // another call has
			}
			select {} // no answer, not even while the process ends
		}
	}
	page := 0 // the default, more than it has tools
	if getenv(Paged) != "" {
		page = 1
	}
	server := newServer(token, page, func(context.Context, mcp.Request) bool {
		return token != "" && filepath.Base(getenv("HOME")) == home && asGiven(args[1:], lookup)
	}, see)
	if getenv(Slow) != "" {
		server.AddReceivingMiddleware(hesitate)
	}
	go func() { ended <- server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: writeCloser{out}}) }()
	select {
	case <-crashed:
		return 1
	case err = <-ended:
		if getenv(Stubborn) != "" {
			stay(life)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 1
	}
	return 0
}

// stay keeps a stubborn server running until a signal comes or the time staying is over.
func stay(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, staying)
	defer stop()
	<-ctx.Done()
}

// asGiven reports whether all additions of Oddly have arrived unchanged. It
// returns true if the server got no additions at all.
func asGiven(args []string, lookup func(string) (string, bool)) bool {
	nothing, isEmpty := lookup(empty)
	value, isOdd := lookup(Odd)
	if !isEmpty && !isOdd && len(args) == 0 {
		return true
	}
	return isEmpty && nothing == "" && value == letters && slices.Equal(args, further)
}

// hesitate delays the answer to the first message, and with it the answers to all later ones.
func hesitate(next mcp.MethodHandler) mcp.MethodHandler {
	awake := sync.OnceFunc(func() { time.Sleep(slowness) })
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		awake()
		return next(ctx, method, r)
	}
}

type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }

// Read returns the sightings of a log. If the log does not exist, the server was
// not started, and there are none.
func Read(log string) ([]Sighting, error) {
	raw, err := os.ReadFile(log)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the canary's log: %w", err)
	}
	var sightings []Sighting
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, len(raw)+1)
	for lines.Scan() {
		var s Sighting
		if json.Unmarshal(lines.Bytes(), &s) == nil { // the last line may be torn
			sightings = append(sightings, s)
		}
	}
	return sightings, nil
}

// Server is a canary behind streamable HTTP on the loopback interface.
type Server struct {
	token string
	http  *http.Server
	url   string
	doing sync.WaitGroup

	mu        sync.Mutex
	sightings []Sighting
}

// Start starts a canary over HTTP.
func Start(token string) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the canary: %w", err)
	}
	s := &Server{token: token, url: "http://" + listener.Addr().String() + "/mcp"}
	arrived := func(_ context.Context, r mcp.Request) bool {
		extra := r.GetExtra()
		return extra != nil && extra.Header.Get(Header) == token
	}
	server := newServer(token, 0, arrived, s.see)
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	s.http = &http.Server{Handler: loopback.Guard(mux), ReadHeaderTimeout: 10 * time.Second}
	s.Serve(listener)
	return s, nil
}

// Serve accepts connections from an additional listener until Close, which closes the listener.
func (s *Server) Serve(l net.Listener) {
	s.doing.Go(func() { _ = s.http.Serve(l) }) // always an error: the server was closed
}

func (s *Server) see(sighting Sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sightings = append(s.sightings, sighting)
}

// Entry returns the entry of session/new for this server.
func (s *Server) Entry(name string) mockclient.HTTPServer {
	return mockclient.HTTPServer{
		Type: "http", Name: name, URL: s.url, Headers: []mockclient.EnvVariable{{Name: Header, Value: s.token}},
	}
}

// Sightings returns the contacts so far.
func (s *Server) Sightings() []Sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Sighting{}, s.sightings...)
}

// Close stops the server and ends open connections.
func (s *Server) Close() error {
	err := s.http.Close()
	s.doing.Wait()
	return err
}
