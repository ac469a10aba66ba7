package grammar

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// fallsBack reports whether the agent has answered the offer of versionProbe with version 1.
func fallsBack(t *transcript.Transcript) bool {
	return lists.Any(t.All(), func(e transcript.Entry) bool {
		version, _ := e.JSON().Path("result.protocolVersion").Int()
		return e.Source == transcript.Agent && e.Kind == transcript.Response && version == 1
	})
}

// demandsLogin reports whether the agent, which offers logins, opened no session because nobody had logged in.
func demandsLogin(t *transcript.Transcript) (demands bool) {
	offers := false
	for e := range t.All() {
		if e.Source != transcript.Agent || e.Kind != transcript.Response {
			continue
		}
		offers = offers || e.JSON().Path("result.authMethods").Len() > 0
		code, _ := e.JSON().Path("error.code").Int()
		demands = demands || offers && e.Method == "session/new" && code == -32000
	}
	return demands
}

// learnsCommand adds a command to Commands if the agent carried it out without the model, and another session went on.
func (a *Ability) learnsCommand(name string, turns []*asked) {
	requests := func(p *asked, text string) bool {
		return slices.ContainsFunc(p.entries, func(e transcript.Entry) bool {
			return e.Kind == transcript.ModelRequest && bytes.Contains(e.Raw, []byte(text))
		})
	}
	by := map[string]*asked{}
	for _, p := range turns {
		by[p.text] = p
	}
	command, after := by["/"+name], by["after"]
	if command != nil && after != nil && command.ending() == "end_turn" && !requests(command, "") &&
		after.ending() == "end_turn" && requests(after, keptText) {
		a.Commands = append(a.Commands, name)
	}
}

// Learn returns the Ability of an agent, from the transcripts of its calibration.
func Learn(seen map[string]*transcript.Transcript) *Ability {
	a := &Ability{Able: map[string]bool{}, Tools: map[string]Tool{}, Blocks: map[string]string{}, Busy: "unknown"}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if name == versionProbe {
			a.Falls, a.Demands = fallsBack(seen[name]), demandsLogin(seen[name])
			continue
		}
		var began time.Duration
		for e := range seen[name].All() {
			a.greeted(e, &began)
		}
		if n, ok := strings.CutPrefix(name, modeProbe); ok {
			a.asksIn(n, seen[name])
			continue
		}
		if command, ok := strings.CutPrefix(name, commandProbe); ok {
			a.learnsCommand(command, a.promptsOf(seen[name]))
			continue
		}
		for _, p := range a.promptsOf(seen[name]) {
			a.turned(name, p)
		}
	}
	return a
}

// asksIn sets a.Asks to the n-th mode if the agent asked for permission in that mode.
func (a *Ability) asksIn(n string, t *transcript.Transcript) {
	i, err := strconv.Atoi(n)
	for _, p := range a.promptsOf(t) {
		if err == nil && i < len(a.Modes) && a.Asks == "" && p.tool().asks() {
			a.Asks = a.Modes[i]
		}
	}
}

// greeted learns from an entry about the start, the login, initialize or a new session.
func (a *Ability) greeted(e transcript.Entry, began *time.Duration) {
	switch {
	case e.Kind == transcript.Started:
		*began = e.At
	case e.Source == transcript.Network:
		a.reached(e)
	case e.Source == transcript.Editor && (e.Method == "authenticate" || e.Method == "auth/login"):
		a.Login = e.JSON().Path("params.methodId").Str()
	case acpframe.Update(e) == "available_commands_update":
		a.commands = nil
		for c := range e.JSON().Path("params.update.availableCommands").Items() {
			a.commands = append(a.commands, c.Get("name").Str())
		}
	case e.Source != transcript.Agent || e.Kind != transcript.Response:
	case e.Method == "initialize":
		a.Start = max(a.Start, e.At-*began)
		flags("", e.JSON().Path("result.agentCapabilities"), a.Able)
		a.greetedV2(e.JSON().Get("result"))
	case e.Method == "session/new":
		a.settings(e.JSON().Get("result"))
	}
}

// reached learns from an entry of the network whether the agent is reached over HTTP, and whether each message of its
// sessions has an id.
func (a *Ability) reached(e transcript.Entry) {
	switch e.Kind {
	case transcript.Opened:
		a.Able[onNetwork] = true
		a.Able[onHTTP] = a.Able[onHTTP] || e.JSON().Get("form").Is("connection")
	case transcript.Closed:
		if n, _ := e.JSON().Get("events").Int(); n > 0 && e.Session != "" {
			whole, _ := e.JSON().Get("cursors").Bool()
			a.bare = a.bare || !whole
			a.Able[cursors] = a.Able[onHTTP] && !a.bare
		}
	}
}

// These capabilities are learned from the transport and not advertised.
const (
	onNetwork = "network"
	onHTTP    = "http"
	cursors   = "http.cursors"
)

// inV1 replaces the names of version 2 capabilities with those of version 1.
var inV1 = strings.NewReplacer("session.prompt.", "promptCapabilities.", "session.", "sessionCapabilities.")

// greetedV2 reads the initialize result of an agent that speaks version 2. Other results are ignored.
func (a *Ability) greetedV2(v wire.Value) {
	if version, _ := v.Get("protocolVersion").Int(); version != 2 {
		return
	}
	a.V2 = true
	able := map[string]bool{}
	flags("", v.Get("capabilities"), able)
	for name := range able {
		a.Able[inV1.Replace(name)] = true
	}
	if able["session"] { // what every agent with sessions can do
		for _, name := range []string{"load", "resume", "list", "close"} {
			a.Able[waysIn[slices.IndexFunc(waysIn, func(w way) bool { return w.name == name })].needs] = true
		}
	}
}

// flags adds the paths of supported capabilities to into. A capability is supported if it is neither null nor false.
func flags(prefix string, v wire.Value, into map[string]bool) {
	for key, value := range v.Members() {
		yes, isBool := value.Bool()
		if value.IsNull() || isBool && !yes {
			continue
		}
		into[prefix+key] = true
		if value.Kind() == wire.Object {
			flags(prefix+key+".", value, into)
		}
	}
}

// settings learns the modes and options of a session.
func (a *Ability) settings(v wire.Value) {
	a.Mode, a.Modes, a.Options = v.Path("modes.currentModeId").Str(), nil, nil
	for m := range v.Path("modes.availableModes").Items() {
		if id := m.Get("id").Str(); id != a.Mode {
			a.Modes = append(a.Modes, id)
		}
	}
	for o := range v.Get("configOptions").Items() {
		if !o.Get("type").Is("select") {
			continue
		}
		opt := Option{ID: cmp.Or(o.Get("id").Str(), o.Get("configId").Str()), Current: o.Get("currentValue").Str()}
		for x := range o.Get("options").Items() {
			if value := x.Get("value").Str(); value != "" && value != opt.Current {
				opt.Values = append(opt.Values, value)
			}
		}
		switch isMode := o.Get("category").Is("mode") || opt.ID == "mode"; {
		case !isMode:
			a.Options = append(a.Options, opt)
		case a.V2:
			a.modeID, a.Mode, a.Modes = opt.ID, opt.Current, opt.Values
		}
	}
}

// asked is one prompt of the calibration, with the entries of its turn.
type asked struct {
	text    string
	entries []transcript.Entry
	end     transcript.Entry
}

// promptsOf splits a transcript by its prompts. Each entry belongs to the latest prompt sent before it, except that
// the entry that ends a turn belongs to the prompt of that turn.
func (a *Ability) promptsOf(t *transcript.Transcript) (out []*asked) {
	by := map[int]*asked{}
	for e := range t.All() {
		switch {
		case e.Source == transcript.Editor && e.Kind == transcript.Request && e.Method == "session/prompt":
			p := &asked{text: e.JSON().Path("params.prompt.0.text").Str()}
			p.entries = append(p.entries, e)
			by[e.Seq] = p
			out = append(out, p)
		case by[e.Ref] != nil && a.ends(e):
			by[e.Ref].end = e
		case len(out) > 0:
			out[len(out)-1].entries = append(out[len(out)-1].entries, e)
		}
	}
	return out
}

// ends reports whether an entry ends the turn of the prompt that it refers to.
func (a *Ability) ends(e transcript.Entry) bool {
	if !a.V2 || e.JSON().Get("error").Exists() {
		return e.Source == transcript.Agent && e.Kind == transcript.Response
	}
	return acpframe.Update(e) == "state_update"
}

// ending says how the turn ended: its stop reason, "refused" after an error, or "no answer".
func (p *asked) ending() string {
	switch v := p.end.JSON(); {
	case p.end.Seq == 0:
		return "no answer"
	case v.Get("error").Exists():
		return "refused"
	default:
		return cmp.Or(v.Path("result.stopReason").Str(), v.Path("params.update.stopReason").Str())
	}
}

// turned adds what one turn of the calibration shows to a. probe is the name of the turn's scenario.
func (a *Ability) turned(probe string, p *asked) {
	if p.end.Seq > 0 && p.text != "hello" {
		a.Turn = max(a.Turn, p.end.At-p.entries[0].At)
	}
	switch {
	case probe == "tools" || probe == "servers":
		t := p.tool()
		t.Promised = probe == "servers" // its probe is there because the profile names it
		a.Tools[p.text] = t
		a.Waits = a.Waits || p.text == "delegate" && p.hearsSubagent()
	case p.text == "hello":
		a.streams(p)
	case probe == "together" && p.text == "the other":
		a.Together = p.end.Seq > 0 && !slices.ContainsFunc(p.entries, func(e transcript.Entry) bool {
			return e.Kind == transcript.GateReleased && e.Seq < p.end.Seq
		})
	case p.text == "second":
		a.Busy = p.ending()
	case strings.HasPrefix(probe, "promptCapabilities."):
		a.Blocks[p.text] = p.ending()
	}
}

// hearsSubagent reports whether a model request of the turn has the answer of its subagent.
func (p *asked) hearsSubagent() bool {
	return slices.ContainsFunc(p.entries, func(e transcript.Entry) bool {
		return e.Kind == transcript.ModelRequest && bytes.Contains(e.Raw, []byte(begun("calibrated")))
	})
}

// streams finds out whether the agent sends text while a gate holds the model's reply, and in how many updates.
func (a *Ability) streams(p *asked) {
	held := true
	for _, e := range p.entries {
		if e.Kind == transcript.GateReleased {
			held = false
		}
		if acpframe.Update(e) == "agent_message_chunk" {
			a.Streams = a.Streams || held
			if held {
				a.Pieces++
			}
		}
	}
}

// tool describes a tool by the entries of a turn in which the model called it.
func (p *asked) tool() (t Tool) {
	status := ""
	for _, e := range p.entries {
		switch {
		case e.Source != transcript.Agent:
		case e.Kind == transcript.Request && e.Method == "session/request_permission":
			for o := range e.JSON().Path("params.options").Items() {
				t.Choices = append(t.Choices, o.Get("kind").Str())
			}
			t.Tells = t.Tells || slices.ContainsFunc(p.entries, func(x transcript.Entry) bool {
				return x.Source == transcript.Agent && x.Seq <= e.Seq && bytes.Contains(x.Raw, []byte(shown[p.text]))
			})
		case e.Kind == transcript.Request && !slices.Contains(t.Requests, e.Method):
			t.Requests = append(t.Requests, e.Method)
			t.Tells = t.Tells || e.JSON().Path("params.requestedSchema.required.0").Exists()
		default:
			t.updated(e)
			status = cmp.Or(e.JSON().Path("params.update.status").Str(), status)
		}
	}
	slices.Sort(t.Choices)
	t.Choices = slices.Compact(t.Choices)
	t.Works = t.worked(p, status)
	return t
}

// updated learns from an update whether a call or its terminal can be cancelled.
func (t *Tool) updated(e transcript.Entry) {
	switch {
	case !e.JSON().Path("params.update.capabilities.cancel").Exists():
	case acpframe.Update(e) == "terminal_update":
		t.Ends = true
	default:
		t.Stops = true
	}
}

// tellsResult reports whether the result of the call is new in a model request of the turn. It recognizes a successful
// call that the agent does not show to the editor.
func (p *asked) tellsResult() bool {
	requests := lists.Where(p.entries, func(e transcript.Entry) bool { return e.Kind == transcript.ModelRequest })
	if results[p.text] == "" || len(requests) < 2 {
		return false
	}
	tells := func(e transcript.Entry) bool { return bytes.Contains(e.Raw, []byte(results[p.text])) }
	return !tells(requests[0]) && slices.ContainsFunc(requests, tells)
}

// worked reports whether a tool call succeeded. Calibration cannot give all tools what they need, so for some tools
// less than a completed call is enough.
func (t *Tool) worked(p *asked, status string) bool {
	switch p.text {
	case "plan":
		return lists.Any(slices.Values(p.entries), func(e transcript.Entry) bool {
			return e.Source == transcript.Agent && strings.HasPrefix(acpframe.Update(e), "plan")
		})
	case "fetch": // there is no page
		return status == "completed" || status == "failed"
	case "ask_user":
		return status == "completed" || slices.Contains(t.Requests, "elicitation/create")
	}
	return status == "completed" || status == "" && p.tellsResult()
}
