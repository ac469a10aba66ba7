package invariants_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
)

// What the two sides of version 1 advertise in the examples: all that there is.
const (
	allOfClient = `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,` +
		`"session":{"configOptions":{"boolean":{}}},"elicitation":{"form":{},"url":{}}}`
	allOfAgentV2 = `{"session":{"delete":{},"prompt":{"image":{},"audio":{},"embeddedContext":{}}}}`
	allOfAgent   = `{"loadSession":true,"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},` +
		`"mcpCapabilities":{"http":true,"sse":true},"sessionCapabilities":{"list":{},"delete":{},` +
		`"additionalDirectories":{},"resume":{},"close":{}},"auth":{"logout":{}}}`
)

// dialect is a version of the protocol: how its connections begin. It plays the examples of rules,
// which are written in a short notation of their own: what docs and help show of a rule is what
// tests it.
type dialect struct {
	classifier   transcript.Classifier
	hello, greet string // the params of initialize, and its result
	file         string // the params of session/new
}

// dialectV1 returns the dialect of version 1. Both sides advertise all that there is.
func dialectV1() dialect {
	return dialect{
		classifier: acpframe.Classifier{},
		hello: `{"protocolVersion":1,"clientCapabilities":` + allOfClient +
			`,"clientInfo":{"name":"c","version":"1"}}`,
		greet: `{"protocolVersion":1,"agentCapabilities":` + allOfAgent +
			`,"agentInfo":{"name":"a","version":"1"},"authMethods":[]}`,
		file: `{"cwd":"/w","mcpServers":[]}`,
	}
}

// dialectV2 returns the dialect of version 2, in which an agent advertises what rules ask for.
func dialectV2() dialect {
	return dialect{
		classifier: acpframe.V2{},
		hello:      `{"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{}}`,
		greet: `{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":` + allOfAgentV2 +
			`,"authMethods":[]}`,
		file: `{"cwd":"/w"}`,
	}
}

// play is one example being written into a transcript.
type play struct {
	*transcript.Transcript
	dialect
	config     rules.Config
	end        rules.End
	also       []string
	now        time.Time
	lastEditor int
	conn       int // number of the connection, which "restart" raises
}

// stage writes a text in the notation of rules.Example into a transcript that a checker
// of the rules watches, and judges it. also is what the text says to be found besides. It
// panics where the text is wrong.
func (d dialect) stage(of *rules.Set, text string, config rules.Config) (findings []rules.Finding,
	checker *rules.Checker, also []string) {
	p := d.perform(text, config)
	checker = of.NewChecker(p.config)
	p.Observe(checker.Observe)
	return checker.Finish(p.end), checker, p.also
}

// transcript returns the transcript that a text is.
func (d dialect) transcript(text string) *transcript.Transcript {
	return d.perform(text, rules.Config{}).Transcript
}

func (d dialect) perform(text string, config rules.Config) *play {
	p := &play{dialect: d, now: time.Unix(0, 0), config: config, end: rules.End{Clean: true, Linger: time.Second}}
	t, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: d.classifier,
		Now: func() time.Time { p.now = p.now.Add(time.Millisecond); return p.now }})
	if err != nil {
		panic(err)
	}
	p.Transcript = t
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if err := p.line(line); err != nil {
			panic(fmt.Sprintf("line %d %q: %v", i+1, line, err))
		}
	}
	return p
}

func (p *play) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "-->", "<--":
		p.frame(word == "-->", rest)
	case "-->|", "<--|":
		p.send(word == "-->|", rest, 0)
	case `<--\`:
		raw, err := strconv.Unquote(`"` + rest + `"`)
		p.send(false, raw, 0)
		return err
	case "<--+":
		p.send(false, rest, 1<<30)
	case "agent":
		p.config.Start = strings.TrimPrefix(rest, "started in ")
	case "promises":
		switch key, value, _ := strings.Cut(rest, "="); key {
		case "asks":
			p.config.Asks = strings.Split(value, ",")
		case "stops-taken-back":
			p.config.Stops = true
		default:
			p.config.Busy = value
		}
	case "start":
		p.call(true, `"init"`, "initialize", p.hello)
		p.answer(false, `"init"`, "result", p.greet)
	case "session":
		name, result, _ := strings.Cut(rest, " ")
		p.call(true, quote("new "+name), "session/new", p.file)
		p.answer(false, quote("new "+name), "result", with(cmp.Or(result, "{}"), "sessionId", quote(name)))
	case "model", "note":
		words := strings.SplitN(rest, " ", 3)
		p.Append(transcript.Entry{Source: transcript.Source(word), Kind: transcript.Kind(words[0]), Session: words[1],
			Raw: []byte(words[2])})
	case "written":
		p.Append(transcript.Entry{Source: transcript.Editor, Kind: transcript.Written, Ref: p.lastEditor})
	case "stdin-closed":
		p.Append(transcript.Entry{Source: transcript.Process, Kind: transcript.StdinClosed})
	case "signal":
		p.Append(transcript.Entry{Source: transcript.Process, Kind: transcript.Signalled})
	case "exit":
		p.Append(transcript.Entry{Source: transcript.Process, Kind: transcript.Exited,
			Raw: []byte(cmp.Or(rest, `{"code":0}`))})
	case "wait":
		d, err := time.ParseDuration(rest)
		p.now = p.now.Add(d)
		p.Append(transcript.Entry{Source: transcript.Note, Kind: transcript.Noted})
		return err
	case "restart":
		p.conn++
	case "cut":
		p.end = rules.End{}
	case "also":
		p.also = strings.Fields(rest)
	default:
		return fmt.Errorf("unknown word %q", word)
	}
	return nil
}

func (p *play) send(editor bool, raw string, size int) {
	from := transcript.Agent
	if editor {
		from = transcript.Editor
	}
	e := p.AppendFrame(p.conn, from, []byte(raw), size)
	if editor {
		p.lastEditor = e.Seq
	}
}

// call sends a request, or a notification if the id is "".
func (p *play) call(editor bool, id, method, params string) {
	if id != "" {
		id = `"id":` + id + ","
	}
	p.send(editor, fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":%s}`, id, method, params), 0)
}

// answer sends a response; member is result or error.
func (p *play) answer(editor bool, id, member, value string) {
	p.send(editor, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%q:%s}`, id, member, value), 0)
}

func (p *play) frame(editor bool, rest string) {
	words := strings.SplitN(rest, " ", 4)
	isID := words[0] == "null" || words[0][0] == '"' || words[0][0] >= '0' && words[0][0] <= '9'
	switch {
	case isID && words[1] == "=":
		p.answer(editor, words[0], "result", strings.Join(words[2:], " "))
	case isID && words[1] == "!":
		p.answer(editor, words[0], "error", `{"code":`+words[2]+`,"message":`+words[3]+"}")
	case isID:
		p.call(editor, words[0], words[1], params(strings.Join(words[2:], " ")))
	case !editor && !strings.ContainsAny(words[0], "/"):
		update := strings.Join(words[2:], " ")
		if update[0] == '"' {
			update = `{"content":{"type":"text","text":` + update + `}}`
		}
		p.call(false, "", "session/update",
			fmt.Sprintf(`{"sessionId":%q,"update":%s}`, words[0], with(update, "sessionUpdate", quote(words[1]))))
	default:
		method, args, _ := strings.Cut(rest, " ")
		p.call(editor, "", method, params(args))
	}
}

// params expands "SESSION JSON" to an object with that session, and a string
// to a prompt of that text.
func params(args string) string {
	if args == "" || args[0] == '{' {
		return args
	}
	session, rest, _ := strings.Cut(args, " ")
	switch {
	case rest == "":
		rest = "{}"
	case rest[0] == '"':
		rest = `{"prompt":[{"type":"text","text":` + rest + `}]}`
	}
	return with(rest, "sessionId", quote(session))
}

func with(object, key, value string) string {
	if !json.Valid([]byte(object)) {
		panic("not JSON: " + object)
	}
	inner := bytes.TrimSpace([]byte(object))
	if string(inner) == "{}" {
		return "{" + quote(key) + ":" + value + "}"
	}
	if !json.Valid([]byte(value)) || strings.Contains(object, `"`+key+`":`) {
		return object
	}
	return "{" + quote(key) + ":" + value + "," + string(inner[1:])
}

func quote(s string) string { return strconv.Quote(s) }
