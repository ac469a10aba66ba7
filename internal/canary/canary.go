// Package canary provides an MCP server, the canary, with a tool that reports its use. A test names the canary in
// session/new and lets the model call the tool. Each contact with the canary is recorded as a Sighting, and the
// tool's result contains a word that cannot be guessed. The test therefore knows whether the agent really connected
// to the session's MCP servers.
package canary

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is the name of the tool. It takes a text and answers "TOKEN: text".
const Tool = "canary_sing"

// Rest is the name of a tool without arguments. A call of Rest is a Sighting whose text is the tool's name.
const Rest = "canary_rest"

// Arguments for which Tool behaves differently. Crash ends a stdio server at once. Hang makes the call wait until it
// is cancelled or the connection ends. Fail makes the tool report a failure. Silent makes its result empty. Picture
// adds an image after the text. If the text begins with Late, the call takes a second, even if it is cancelled. If it
// begins with Verses, the result has two texts. Wrong makes the server answer with an error of JSON-RPC. Files adds an
// embedded text and a link after the text, Sound adds audio, and Bytes adds an embedded resource that is no text. Steps
// reports progress in two steps, and then makes the result empty.
const (
	Crash   = "crash"
	Hang    = "hang"
	Fail    = "fail"
	Silent  = "silent"
	Picture = "picture"
	Late    = "late"
	Verses  = "verses"
	Files   = "files"
	Sound   = "sound"
	Bytes   = "bytes"
	Wrong   = "wrong"
	Steps   = "steps"
)

// dot is a PNG image of one pixel.
var dot = []byte("\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0d" +
	"IHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU" +
	"\x00\x00\x00\x0aIDATx\xdac`\x00\x00\x00\x02\x00\x01\xe5'\xde\xfc\x00\x00\x00\x00IEND\xaeB`\x82")

// beat is a WAV sound of one sample.
var beat = []byte("RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00" +
	"\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00")

// Variable and Header contain the token: Variable is an environment variable of a stdio server, Header an HTTP
// header. The agent must pass them as session/new specifies. A stdio server also gets its own HOME, which the agent
// must not replace by the agent's HOME.
const (
	Variable = "CANARY_TOKEN"
	Header   = "X-Canary-Token"
)

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
	// Failed is true if the server answers the call with an error.
	Failed bool `json:"failed,omitempty"`
	// Open is true if the server answers the call only after the client has given up.
	Open bool `json:"open,omitempty"`
	// Token is true if the token and, for a stdio server, its HOME and the additions of Oddly arrived unchanged.
	Token bool `json:"token"`
	// Number is the value of the X-Canary-Number header of a call over streamable HTTP; "" without the header.
	Number string `json:"number,omitempty"`
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
			s := Sighting{What: "called", Text: in.Text, Open: in.Text == Hang, Token: arrived(ctx, r),
				Failed: in.Text == Fail || in.Text == Wrong}
			if !slices.Contains([]string{Crash, Hang, Fail, Silent, Steps, Wrong}, in.Text) {
				s.Said = text
			}
			if r.Extra != nil {
				s.Number = r.Extra.Header.Get(Number)
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
			if in.Text == Steps {
				tell(ctx, r, 1)
				tell(ctx, r, 2)
			}
			said := []mcp.Content{}
			if in.Text != Silent && in.Text != Steps {
				said = append([]mcp.Content{&mcp.TextContent{Text: text}}, behind(s)...)
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

// behind returns what follows the text in the result of a call.
func behind(s Sighting) []mcp.Content {
	switch {
	case s.Also != "":
		return []mcp.Content{&mcp.TextContent{Text: s.Also}}
	case s.Text == Files:
		return []mcp.Content{
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "canary://song", MIMEType: "text/plain", Text: "La."}},
			&mcp.ResourceLink{URI: "canary://more", Name: "more"}}
	case s.Text == Picture:
		return []mcp.Content{&mcp.ImageContent{Data: dot, MIMEType: "image/png"}}
	case s.Text == Sound:
		return []mcp.Content{&mcp.AudioContent{Data: beat, MIMEType: "audio/wav"}}
	case s.Text == Bytes:
		return []mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "canary://egg.bin",
			MIMEType: "application/octet-stream", Blob: []byte("\x00\xff\xfe")}}}
	}
	return nil
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

// Token returns the canary's secret word in a run with the given seed.
func Token(seed int64) string { return "canary-" + strconv.FormatInt(seed, 10) }
