package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/protocol/acp"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/acpreport"
	"github.com/acp-test/acp-test/protocol/acp/grammar"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/protocol/acp/schedules"
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/protocol/agui/aguireport"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	aguigrammar "github.com/acp-test/acp-test/protocol/agui/grammar"
	aguischedules "github.com/acp-test/acp-test/protocol/agui/schedules"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/scenarios/script"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/sweep"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// protocol is a protocol together with the functions and data that the commands need for it.
type protocol struct {
	*scenarios.Protocol
	reference  string // name of the reference agent's profile for this protocol
	recordings replay.Protocol
	planner    func() *sweep.Planner     // nil if the protocol has no sweeps
	generator  *sweep.Generator          // draws conversations
	agent      func(r *rand.Rand) []byte // draws agent-side scenarios; nil if the protocol has none
	reports    reports.Protocol
	// read reads a recording. looks reports whether a file looks like a recording of this protocol if it lacks this
	// program's header. looks is nil if frames of this protocol cannot be recognized.
	read  func(io.Reader, func(transcript.Entry)) (*transcript.Transcript, error)
	looks func(head []byte) bool
	// front returns an HTTP endpoint for clients under test. It is nil if clients start the agent instead.
	front func(script *serve.Script, recording, log *transcript.Transcript) *serve.Web
	// convert makes a scenario from a recording and a model script. hasModel reports whether the recording itself
	// contains such a script. relaxed changes a converted scenario so that its turns may end in any way.
	convert  func(t *transcript.Transcript, title string, model []byte) (*recordings.Converted, error)
	hasModel func(t *transcript.Transcript) bool
	relaxed  func(text []byte) []byte
	// kind returns the kind of an update. It is nil if an entry's text already shows the kind.
	kind func(e transcript.Entry) string
	// fields returns descriptions of the members of messages, for the inspector page. It is nil if there are none.
	fields func() inspector.Fields
}

// makers has one constructor per protocol, in the order of protocolNames.
var makers = []func() protocol{acpV1, acpV2, aguiV1}

// protocols returns all protocols; the first is the default. Each one loads megabytes of rules, so a command that
// needs a single protocol should use protocolNamed.
func protocols() []protocol {
	return lists.Map(makers, func(protocol func() protocol) protocol { return protocol() })
}

func acpV1() protocol {
	return ofACP(protocol{
		Protocol: acp.V1(), reference: "reference", recordings: recordings.V1(), planner: schedules.V1,
		generator: grammar.V1(), reports: acpreport.V1(),
	})
}

func acpV2() protocol {
	return ofACP(protocol{
		Protocol: acp.V2(), reference: "reference-acp-v2", recordings: recordings.V2(), planner: schedules.V2,
		generator: grammar.V2(), reports: acpreport.V2(), looks: recordings.LooksV2,
	})
}

// ofACP adds the parts that all versions of ACP share.
func ofACP(p protocol) protocol {
	p.read = func(in io.Reader, each func(transcript.Entry)) (*transcript.Transcript, error) {
		return replay.Read(p.recordings, in, each)
	}
	p.convert = func(t *transcript.Transcript, title string, model []byte) (*recordings.Converted, error) {
		return recordings.Convert(p.Protocol, t, title, model)
	}
	p.hasModel = func(t *transcript.Transcript) bool { return recordings.Model(t) != nil }
	p.relaxed, p.kind = recordings.Relaxed, acpframe.Update
	p.agent = func(r *rand.Rand) []byte { return grammar.Agent(r, p.Name == acp.NameV2) }
	p.fields = func() inspector.Fields { return acp.Fields(p.Protocol) }
	return p
}

func aguiV1() protocol {
	p := protocol{
		Protocol: agui.V1(), reference: "reference-ag-ui", recordings: aguirecord.Protocol{}, planner: aguischedules.V1,
		generator: aguigrammar.V1(), reports: aguireport.V1(), read: readingWeb, looks: aguirecord.Looks, fields: agui.Fields,
		hasModel: aguirecord.HasModel, relaxed: aguirecord.Relaxed,
	}
	p.convert = func(t *transcript.Transcript, title string, model []byte) (*recordings.Converted, error) {
		text, left, err := aguirecord.Convert(p.Protocol, t, title, model)
		return &recordings.Converted{Text: text, Left: left, NoGolden: true}, err
	}
	p.front = func(script *serve.Script, recording, log *transcript.Transcript) *serve.Web {
		return endpoint.Front(p.recordings, script, recording, log)
	}
	return p
}

// readingWeb reads a recording of AG-UI, then calls each with its entries.
func readingWeb(in io.Reader, each func(transcript.Entry)) (*transcript.Transcript, error) {
	t, err := aguirecord.Read(in)
	if err == nil && each != nil {
		for e := range t.Shown() {
			each(e)
		}
	}
	return t, err
}

// protocolNames returns the names of the protocols. They are repeated here because most command lines, such as
// starting an agent, must not load megabytes of rules.
func protocolNames() []string { return []string{language.Default, acp.NameV2, agui.Name} }

// suiteNames returns the names of all suites.
func suiteNames() []string { return lists.Flat(protocols(), protocol.SuiteNames) }

// protocolNamed returns the protocol with this name; "" is the default.
func protocolNamed(name string) (protocol, error) {
	if i := slices.Index(protocolNames(), cmp.Or(name, language.Default)); i >= 0 {
		return makers[i](), nil
	}
	return protocol{}, oneOf("--protocol", "protocol", name, protocolNames())
}

// protocolIn returns the protocol of a recording: the one in --protocol, else the one in a transcript's header, else
// the first one that fits the frames at the beginning. The header of a recorded session is ignored, because it was
// written before the two sides agreed on a version.
func (h *host) protocolIn(in *bufio.Reader) (protocol, error) {
	if h.protocol != "" {
		return protocolNamed(h.protocol)
	}
	head, _ := in.Peek(beginning) // the caller's next read reports the error
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if v, err := wire.Parse(line); err == nil && v.Get("acp-test").Exists() &&
		(v.Get("scenario").Exists() || !v.Get("protocol").Is(acpV1().Version)) {
		return protocolVersion(v.Get("protocol").Str()), nil
	}
	return looking(head), nil
}

// protocolThat returns the first protocol for which fits is true, or else the default protocol.
func protocolThat(fits func(protocol) bool) protocol {
	return protocols()[max(slices.IndexFunc(protocols(), fits), 0)]
}

// beginning is how many bytes of a recording are examined to recognize its protocol.
const beginning = 32 << 10

// looking recognizes a protocol by the first frames of a recording. It returns the default protocol if none fits.
func looking(head []byte) protocol {
	return protocolThat(func(p protocol) bool { return p.looks != nil && p.looks(head) })
}

// judge returns the judge of recordings of the protocol.
func (p protocol) judge(severity string) replay.Judge {
	return replay.Judge{Protocol: p.recordings, Rules: p.Rules, Severity: severity, Text: p.Canonical}
}

// subject returns the profile of the agent under test.
func (o *options) subject(h *host, of protocol) (*agents.Profile, error) {
	name := o.agent
	if name == "" && o.settings == "" && len(o.command) == 0 && o.url == "" {
		name = of.reference
	}
	if name == "" && o.url != "" && len(o.command) == 0 {
		return &agents.Profile{Name: "endpoint", Title: o.url, URL: o.url, Headers: o.sent(nil), Protocol: of.Name,
			Source: adHoc}, nil
	}
	p, err := h.profile(name, o.settings, o.command)
	if err != nil {
		return nil, err
	}
	if !of.Served {
		if p, err = h.dressed(p, o.profile); err != nil {
			return nil, err
		}
		if o.over == "http" || o.over == "ws" {
			at := p.Over(o.over)
			if at == nil {
				return nil, fmt.Errorf("--over %s: the profile %s has no `listen`, the agent's arguments for serving",
					o.over, p.Name)
			}
			p = at
		}
		if o.url == "" && p.URL == "" {
			if len(o.headers) > 0 {
				return nil, fmt.Errorf("--header requires an agent on a network, and %s is reached over stdio", p.Name)
			}
			return p, nil
		}
	}
	served := *p
	served.Protocol, served.URL = of.Name, cmp.Or(o.url, p.URL, "$PRINTED")
	served.Headers = o.sent(p.Headers)
	if p.Source == adHoc {
		served.Env = maps.Clone(p.Env)
		served.Env["PORT"] = "$PORT"
	}
	return &served, nil
}

// sent returns the HTTP headers in also, together with those of --header, which take precedence.
func (o *options) sent(also map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, also)
	for _, header := range o.headers {
		name, value, _ := strings.Cut(header, ":")
		all[name] = strings.TrimSpace(value)
	}
	return all
}

// protocolVersion returns the protocol with the version in a recording's header. It returns the default protocol if
// none has that version.
func protocolVersion(version string) protocol {
	return protocolThat(func(p protocol) bool { return p.Version == version })
}

// speaks returns the protocol of a run: the one in --protocol, else the one of the agent's profile, else the one of the
// first scenario.
func (o *options) speaks(h *host) (protocol, error) {
	if h.protocol != "" {
		return protocolNamed(h.protocol)
	}
	if o.agent != "" && o.settings == "" {
		// An error is ignored here: the code that uses the profile reports it.
		if p, err := agents.Find(o.agent); err == nil && p.Protocol != "" {
			return protocolNamed(p.Protocol)
		}
	}
	return h.protocolOfPaths(o.paths)
}

// protocolOfPaths returns the protocol in --protocol, or else the protocol of the first scenario file.
func (h *host) protocolOfPaths(paths []string) (protocol, error) {
	files, _ := acp.V1().Files(paths...) // Load reports errors in paths
	if h.protocol != "" || len(files) == 0 {
		return protocolNamed(h.protocol)
	}
	return h.protocolOfFile(files[0])
}

// protocolOfFile returns the protocol in --protocol, or else the first protocol that the scenario file names.
func (h *host) protocolOfFile(name string) (protocol, error) {
	src, err := os.ReadFile(name)
	if h.protocol != "" || err != nil { // Load reports the error
		return protocolNamed(h.protocol)
	}
	tree, _ := script.Parse(name, src)
	p, err := protocolNamed(strings.Join(tree.Protocols()[:min(len(tree.Protocols()), 1)], ""))
	if err != nil {
		return p, oneOf(name+": protocol", "protocol", tree.Protocols()[0], protocolNames())
	}
	return p, nil
}
