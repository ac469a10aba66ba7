// Package canary provides an MCP server, the canary, with a tool that reports its use. A test names the canary in
// session/new and lets the model call the tool. Each contact with the canary is recorded as a Sighting, and the
// tool's result contains a word that cannot be guessed. The test therefore knows whether the agent really connected
// to the session's MCP servers.
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
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/mockclient"
)

// Tool is the name of the tool. It takes a text and answers "TOKEN: text".
const Tool = "canary_sing"

// Rest is the name of a tool without arguments. A call of Rest is a Sighting whose text is the tool's name.
const Rest = "canary_rest"

// Arguments for which Tool behaves differently. Crash ends a stdio server at once. Hang makes the call wait until it
// is cancelled or the connection ends. Fail makes the tool report a failure. Silent makes its result empty. Picture
// adds an image after the text. If the text begins with Late, the call takes a second, even if it is cancelled. If it
// begins with Verses, the result has two texts. Wrong makes the server answer with an error of JSON-RPC. Files adds an
// embedded text and a link after the text. Steps reports progress in two steps, and then makes the result empty.
const (
	Crash   = "crash"
	Hang    = "hang"
	Fail    = "fail"
	Silent  = "silent"
	Picture = "picture"
	Late    = "late"
	Verses  = "verses"
	Files   = "files"
	Wrong   = "wrong"
	Steps   = "steps"
)

// dot is a PNG image of one pixel.
var dot = []byte("\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0d" +
	"IHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU" +
	"\x00\x00\x00\x0aIDATx\xdac`\x00\x00\x00\x02\x00\x01\xe5'\xde\xfc\x00\x00\x00\x00IEND\xaeB`\x82")

// Variable and Header contain the token: Variable is an environment variable of a stdio server, Header an HTTP
// header. The agent must pass them as session/new specifies. A stdio server also gets its own HOME, which the agent
// must not replace by the agent's HOME.
const (
	Variable = "CANARY_TOKEN"
	Header   = "X-Canary-Token"
)

// Odd is an environment variable that tells a stdio server to expect the additions of Oddly.
const Odd = "CANARY_ODD"

// Further values that Oddly adds: the name of a variable with an empty value, and a value with unusual characters.
const (
	empty   = "CANARY_EMPTY"
	letters = `a=b "c" 'd' \ü $HOME ${HOME}`
)

var further = []string{"two words", "", `it's "quoted" \`, "$HOME"}

// Oddly returns s with further arguments and with variables that are empty or have unusual characters. The agent must
// pass all of them unchanged.
func Oddly(s mockclient.MCPServer) mockclient.MCPServer {
	s.Args = slices.Concat(s.Args, further)
	s.Env = append(slices.Clone(s.Env), mockclient.EnvVariable{Name: empty},
		mockclient.EnvVariable{Name: Odd, Value: letters})
	return s
}

// home is the name of a server's HOME folder. It contains a space, as folders of users may.
const home = "canary home"

// number is the prefix of the environment variables that Numbered adds: each stdio server gets another one. The
// variable mine tells a server the name of its own variable.
const (
	number = "CANARY_NUMBER_"
	mine   = "CANARY_MINE"
)

// Numbered returns s with the variable of number n. No other server may get this variable. If a server has the
// variable of another server, the agent mixed up the environments of its servers.
func Numbered(s mockclient.MCPServer, n int) mockclient.MCPServer {
	name := number + strconv.Itoa(n)
	s.Env = append(slices.Clone(s.Env), mockclient.EnvVariable{Name: name, Value: "1"},
		mockclient.EnvVariable{Name: mine, Value: name})
	return s
}

// numbered is the number of variables that a server looks for.
const numbered = 64

// stray returns the name of another server's variable if lookup finds one, and "" otherwise.
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

// Slow is an environment variable. If it is set, a stdio server delays its response to the first greeting.
const Slow = "CANARY_SLOW"

// Stubborn is an environment variable. If it is set, a stdio server keeps running after the end of its input.
const Stubborn = "CANARY_STUBBORN"

// staying is the maximum time for which a stubborn server keeps running. A signal ends the server sooner.
const staying = time.Minute

// Other is an environment variable. If it is set, a stdio server answers with another token.
const Other = "CANARY_OTHER"

// Paged is an environment variable. If it is set, a stdio server lists its tools in pages of one tool.
const Paged = "CANARY_PAGED"

// Chatty is an environment variable. If it is set, a stdio server sends a log message before its first answer, reports
// the progress of a call with the text Hang, also for a moment after the call was given up, and says at the end of its
// input that its tools have changed.
const Chatty = "CANARY_CHATTY"

// Older is an environment variable. If it is set, a stdio server speaks only the first version of MCP.
const Older = "CANARY_OLDER"

// firstMCP is the first version of MCP.
const firstMCP = "2024-11-05"

// Ways are the variables that change how a server over stdio behaves, each by its
// presence.
var Ways = []string{Slow, Stubborn, Other, Paged, Chatty, Older}

// slowness is the delay of a slow server: longer than an agent needs for a turn
// without the server, shorter than any agent waits for a server.
const slowness = time.Second

// Sighting is one contact with the server.
type Sighting struct {
	// What is the kind of contact. "initialized": an MCP client completed the handshake; recorded once per process of
	// a stdio server. "listed": the client asked for the tools, or for their first page. "called": it called a tool.
	// "left": it gave up a call with the text Hang, by a notification or by closing the connection.
	What string `json:"what"`
	// Text is the argument of a call. Said is the text of the call's result; "" if the result has no text or reports
	// a failure.
	Text string `json:"text,omitempty"`
	Said string `json:"said,omitempty"`
	// Also is the second text of the result, if there are two.
	Also string `json:"also,omitempty"`
	// Args has all arguments of a call that has more than the text.
	Args json.RawMessage `json:"args,omitempty"`
	// Open is true if the server answers the call only after the client has given up.
	Open bool `json:"open,omitempty"`
	// Token is true if the token and, for a stdio server, its HOME and the additions of Oddly arrived unchanged.
	Token bool `json:"token"`
	// Stray is the name of a variable that the agent set although the editor specified it for another server; "" if
	// there is none.
	Stray string `json:"stray,omitempty"`
}

// greetings lists the requests with which clients open a connection. The second is from versions of MCP that have no
// session.
var greetings = []string{"initialize", "server/discover"}

// Tools lists the names of the tools, in the order of the server's list.
var Tools = []string{Rest, Tool}

func newServer(
	token string, page int, chatty bool, arrived func(context.Context, mcp.Request) bool, see func(Sighting),
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
		Text  string `json:"text" jsonschema:"any text"`
		Loud  bool   `json:"loud,omitempty" jsonschema:"whether it is loud"`
		Times int    `json:"times,omitempty" jsonschema:"how many times"`
		Note  string `json:"note,omitempty" jsonschema:"a note about it"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: Tool, Description: "Answers with the text it is given, and a word of its own."},
		func(ctx context.Context, r *mcp.CallToolRequest, in song) (*mcp.CallToolResult, any, error) {
			text := token + ": " + in.Text
			s := Sighting{What: "called", Text: in.Text, Open: in.Text == Hang, Token: arrived(ctx, r)}
			if !slices.Contains([]string{Crash, Hang, Fail, Silent, Steps, Wrong}, in.Text) {
				s.Said = text
			}
			if strings.HasPrefix(in.Text, Verses) {
				s.Also = token + ", again: " + in.Text
			}
			var all map[string]any
			if json.Unmarshal(r.Params.Arguments, &all) == nil && len(all) > 1 {
				s.Args = r.Params.Arguments
			}
			see(s)
			if in.Text == Hang {
				if chatty {
					go tells(ctx, r)
				}
				<-ctx.Done()
				see(Sighting{What: "left", Text: Hang, Token: s.Token})
				return nil, nil, ctx.Err()
			}
			if in.Text == Wrong {
				return nil, nil, &jsonrpc.Error{Code: -32603, Message: "the song went wrong"}
			}
			if strings.HasPrefix(in.Text, Late) {
				time.Sleep(slowness)
			}
			said := []mcp.Content{&mcp.TextContent{Text: text}}
			switch {
			case s.Also != "":
				said = append(said, &mcp.TextContent{Text: s.Also})
			case in.Text == Steps:
				tell(ctx, r, 1)
				tell(ctx, r, 2)
				said = []mcp.Content{}
			case in.Text == Silent:
				said = []mcp.Content{}
			case in.Text == Files:
				said = append(said,
					&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "canary://song", MIMEType: "text/plain", Text: "La."}},
					&mcp.ResourceLink{URI: "canary://more", Name: "more"})
			case in.Text == Picture:
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

// tell reports one step of a call's progress, if the client has asked for that.
func tell(ctx context.Context, r *mcp.CallToolRequest, step float64) {
	if token := r.Params.GetProgressToken(); token != nil {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: step,
			Message: fmt.Sprintf("step %v", step)}) // it fails only if the client has gone
	}
}

// tells reports progress until the client gives up the call, and a few times after that.
func tells(ctx context.Context, r *mcp.CallToolRequest) {
	step, left := 0.0, 6
	for tick := time.NewTicker(slowness / 20); left > 0; <-tick.C {
		step++
		tell(context.WithoutCancel(ctx), r, step)
		if ctx.Err() != nil {
			left--
		}
	}
}

// firstPage reports whether a request for the list of tools asks for the first page: it has no cursor.
func firstPage(r mcp.Request) bool {
	p, ok := r.GetParams().(*mcp.ListToolsParams)
	return !ok || p == nil || p.Cursor == ""
}

// Stdio returns the entry in session/new for a canary that the agent starts as a process. command is the absolute
// path of a program that calls Main, and args are its first arguments. The canary appends its sightings to the file
// log; see Read.
func Stdio(name, token, log string, command string, args ...string) mockclient.MCPServer {
	return mockclient.MCPServer{
		Name: name, Command: command, Args: append(append([]string{}, args...), log),
		Env: []mockclient.EnvVariable{{Name: Variable, Value: token},
			{Name: "HOME", Value: filepath.Join(filepath.Dir(log), home)}},
	}
}

// Token returns the canary's secret word in a run with the given seed.
func Token(seed int64) string { return "canary-" + strconv.FormatInt(seed, 10) }

// Main is the program of a canary that Stdio describes. It runs an MCP server on in and out until in ends or a call
// makes it crash. args are the path of the log file, followed by any arguments that Oddly added. lookup is
// os.LookupEnv. Main writes a line to errs for each sighting, as servers do. It returns the exit status.
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
			default: // another call has done it already
			}
			select {} // never answer, not even while the process ends
		}
	}
	page := 0 // 0 is the default size, larger than the number of tools
	if getenv(Paged) != "" {
		page = 1
	}
	chatty := getenv(Chatty) != ""
	server := newServer(token, page, chatty, func(context.Context, mcp.Request) bool {
		return token != "" && filepath.Base(getenv("HOME")) == home && asGiven(args[1:], lookup)
	}, see)
	if getenv(Slow) != "" {
		server.AddReceivingMiddleware(hesitate)
	}
	if getenv(Older) != "" {
		server.AddReceivingMiddleware(agesBack)
	}
	if chatty {
		fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"starting"}}`)
		defer fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
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

// stay waits until a signal comes or the time staying is over. It keeps a stubborn server running.
func stay(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, staying)
	defer stop()
	<-ctx.Done()
}

// asGiven reports whether all additions of Oddly arrived unchanged. It also returns true if no addition arrived,
// because most servers have none.
func asGiven(args []string, lookup func(string) (string, bool)) bool {
	nothing, isEmpty := lookup(empty)
	value, isOdd := lookup(Odd)
	if !isEmpty && !isOdd && len(args) == 0 {
		return true
	}
	return isEmpty && nothing == "" && value == letters && slices.Equal(args, further)
}

// hesitate delays the response to the first message, and therefore the responses to all later ones.
func hesitate(next mcp.MethodHandler) mcp.MethodHandler {
	awake := sync.OnceFunc(func() { time.Sleep(slowness) })
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		awake()
		return next(ctx, method, r)
	}
}

// agesBack makes a server answer with the first version of MCP, whatever the client offers. The server does not know
// the greeting of later versions.
func agesBack(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		if method == greetings[1] {
			return nil, &jsonrpc.Error{Code: -32601, Message: "method not found"}
		}
		result, err := next(ctx, method, r)
		if greeting, ok := result.(*mcp.InitializeResult); ok {
			greeting.ProtocolVersion = firstMCP
		}
		return result, err
	}
}

type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }

// Read returns the sightings of a log. If the log does not exist, the server was never started, and Read returns no
// sightings.
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
		if json.Unmarshal(lines.Bytes(), &s) == nil { // the last line may be incomplete
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

// Start starts a canary over HTTP with the given token. The address of an odd one has a query, and its answers are JSON
// of several lines instead of streams of events.
func Start(token string, odd bool) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the canary: %w", err)
	}
	s := &Server{token: token, url: "http://" + listener.Addr().String() + "/mcp"}
	query := url.Values{}
	if odd {
		query.Set("song", "la & "+token)
		s.url += "?" + query.Encode()
	}
	arrived := func(_ context.Context, r mcp.Request) bool {
		extra := r.GetExtra()
		return extra != nil && extra.Header.Get(Header) == token
	}
	server := newServer(token, 0, false, arrived, s.see)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{JSONResponse: odd})
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Encode() != query.Encode() {
			r.Header.Del(Header) // the agent did not use the address that it was given
		}
		if odd && r.Method == http.MethodPost {
			indented := &indenter{ResponseWriter: w, status: http.StatusOK}
			defer indented.flush()
			w = indented
		}
		handler.ServeHTTP(w, r)
	})
	s.http = &http.Server{Handler: loopback.Guard(mux), ReadHeaderTimeout: 10 * time.Second}
	s.Serve(listener)
	return s, nil
}

// indenter holds an answer in JSON back until flush, which writes it with line breaks and indentation.
type indenter struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (i *indenter) held() bool {
	return strings.HasPrefix(i.Header().Get("Content-Type"), "application/json")
}

func (i *indenter) WriteHeader(status int) {
	if i.status = status; !i.held() {
		i.ResponseWriter.WriteHeader(status)
	}
}

func (i *indenter) Write(p []byte) (int, error) {
	if !i.held() {
		return i.ResponseWriter.Write(p)
	}
	return i.body.Write(p)
}

func (i *indenter) Unwrap() http.ResponseWriter { return i.ResponseWriter }

func (i *indenter) flush() {
	if !i.held() {
		return
	}
	var lines bytes.Buffer
	if json.Indent(&lines, i.body.Bytes(), "", "  ") != nil {
		lines = i.body
	}
	i.Header().Del("Content-Length")
	i.ResponseWriter.WriteHeader(i.status)
	_, _ = i.ResponseWriter.Write(lines.Bytes()) // it fails only if the client has gone
}

// Serve accepts connections from an additional listener until Close, which also closes the listener.
func (s *Server) Serve(l net.Listener) {
	s.doing.Go(func() { _ = s.http.Serve(l) }) // Serve's error only says that the server was closed
}

func (s *Server) see(sighting Sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sightings = append(s.sightings, sighting)
}

// Entry returns the entry in session/new for this server.
func (s *Server) Entry(name string) mockclient.HTTPServer {
	return mockclient.HTTPServer{
		Type: "http", Name: name, URL: s.url, Headers: []mockclient.EnvVariable{{Name: Header, Value: s.token}},
	}
}

// Sightings returns a copy of the sightings so far.
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
