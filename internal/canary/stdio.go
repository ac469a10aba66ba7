package canary

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

	"github.com/acp-test/acp-test/mockclient"
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

// Loud is an environment variable. If it is set, a stdio server writes noise bytes to stderr before its first answer.
const Loud = "CANARY_LOUD"

// noise is more than the buffer of a pipe takes.
const noise = 256 << 10

// Older is an environment variable. If it is set, a stdio server speaks only the first version of MCP.
const Older = "CANARY_OLDER"

// Prompts is an environment variable. If it is set, a stdio server also offers two prompts of MCP: one without a
// description, and one with two arguments.
const Prompts = "CANARY_PROMPTS"

// firstMCP is the first version of MCP.
const firstMCP = "2024-11-05"

// Ways are the variables that change how a server over stdio behaves, each by its
// presence.
var Ways = []string{Slow, Stubborn, Other, Paged, Chatty, Loud, Older, Prompts}

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
	behave(server, getenv, errs)
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

// greet is the answer to prompts/get.
func greet(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
		{Role: "user", Content: &mcp.TextContent{Text: "Greet the canary."}}}}, nil
}

// behave makes a server slow, older or loud, or offer prompts, if its environment says so.
func behave(server *mcp.Server, getenv func(string) string, errs io.Writer) {
	if getenv(Slow) != "" {
		server.AddReceivingMiddleware(hesitate)
	}
	if getenv(Older) != "" {
		server.AddReceivingMiddleware(agesBack)
	}
	if getenv(Prompts) != "" {
		server.AddPrompt(&mcp.Prompt{Name: "canary_greet"}, greet)
		server.AddPrompt(&mcp.Prompt{Name: "canary_verse", Description: "Asks for a verse.", Arguments: []*mcp.PromptArgument{
			{Name: "about", Description: "what it is about", Required: true}, {Name: "lines"}}}, greet)
	}
	if getenv(Loud) != "" {
		const line = "canary: a line of the log of a loud server, as long as such lines usually are\n"
		_, _ = io.WriteString(errs, strings.Repeat(line, noise/len(line)+1)) // it fails if the agent has closed stderr
	}
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
