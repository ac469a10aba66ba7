package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/protocol/acp/remote"
	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/endpoint"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// recording holds the flags of record.
type recording struct {
	out, live, llm     string
	url, listen        string
	redact             []string
	keepText, maskText bool
	noFiles            bool
	ring               string
	install            installing
}

func recordCommand(h *host) *cobra.Command {
	var o recording
	c := command("record", o.check, func(c *cobra.Command, args []string) error {
		if o.ring != "" {
			o.out = h.absolute(cmp.Or(o.out, h.recordings())) + "/"
		}
		switch {
		case o.install.editor() != "":
			return h.install(c, &o, args)
		case o.url != "":
			return h.recordWeb(c.Context(), &o)
		}
		return h.record(&o, args)
	})
	f := c.Flags()
	f.StringVar(&o.out, "out", "", "the recording, a `FILE` or folder")
	f.StringVar(&o.live, "live", "", "judge while recording; print findings to stderr, or to the Unix socket `PATH`")
	f.Lookup("live").NoOptDefVal = "stderr"
	f.StringVar(&o.llm, "llm", "",
		"also record the model's replies, from the provider at `URL` (default: as the environment says)")
	f.Lookup("llm").NoOptDefVal = "environment"
	f.StringVar(&o.ring, "ring", "", "keep only the newest recordings in the folder, `COUNT,SIZE,AGE` (default "+
		defaultRing+"); its subfolder kept has those with failures")
	f.Lookup("ring").NoOptDefVal = defaultRing
	f.StringVar(&o.install.in, "install", "", "record the agents of an `EDITOR`: zed, jetbrains, agent-shell, "+
		"codecompanion, avante, or its settings file")
	f.StringVar(&o.install.out, "uninstall", "", "remove the recorder from the settings of an `EDITOR`")
	f.StringVar(&o.install.agent, "agent", "", "change only the entry `NAME` of the settings (default all)")
	f.BoolVar(&o.install.dry, "dry-run", false, "show the change to the settings, and write nothing")
	f.StringVar(&o.url, "url", "",
		"record the traffic with the server at `URL`: an AG-UI endpoint, or an ACP agent (scheme ws, "+
			"or --protocol)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "the `ADDRESS` at which clients reach the proxy of --url")
	f.StringArrayVar(&o.redact, "redact", nil,
		"also remove text that matches `REGEXP` as a secret (repeatable; with a group, only the group)")
	f.BoolVar(&o.keepText, "keep-text", false,
		"record prompts, messages and file contents unchanged, with any secrets in them")
	f.BoolVar(&o.noFiles, "no-files", false, "leave out the files of the workspace, which a replay elsewhere needs")
	f.BoolVar(&o.maskText, "mask-text", false, "remove prompts, messages and file contents")
	return c
}

// check returns an error if the flags or the agent's command do not fit together.
func (o *recording) check(c *cobra.Command, args []string) error {
	if o.ring == "" && o.install.in != "" {
		o.ring = defaultRing
	}
	if _, err := parseRing(cmp.Or(o.ring, defaultRing)); err != nil {
		return err
	}
	if o.install != (installing{}) {
		return o.install.check(c, args)
	}
	dash := c.ArgsLenAtDash()
	switch {
	case o.url != "" && len(args) > 0:
		return fmt.Errorf("record: --url and an agent's command contradict each other; usage: %s", c.UseLine())
	case o.url != "" && o.live+o.llm != "":
		return errors.New("record: --live and --llm cannot be used with --url")
	case o.url != "" && o.ring != "":
		return errors.New("record: --ring cannot be used with --url")
	case o.url == "" && (dash < 0 || len(args) == dash):
		return fmt.Errorf("record: the agent's command is missing; usage: %s", c.UseLine())
	case dash > 0:
		return fmt.Errorf("record: unexpected argument %q; usage: %s", args[0], c.UseLine())
	case o.out == "" && o.ring == "":
		return fmt.Errorf("record: --out FILE is missing; usage: %s", c.UseLine())
	case o.keepText && o.maskText:
		return errors.New("--keep-text and --mask-text contradict each other")
	}
	return nil
}

func (h *host) record(o *recording, argv []string) (err error) {
	// All signals are forwarded to the agent. SIGPIPE is caught so that a broken pipe becomes an error instead of ending
	// this process.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(passedOn(), syscall.SIGPIPE)...)
	defer signal.Stop(signals)

	live, err := h.live(o.live)
	if err != nil {
		return err
	}
	log, file, err := h.recordingLog(o, acpV1(), agents.AdHoc(argv).Name)
	if err != nil {
		return err
	}
	ran := false
	release := func() {}
	defer func() { release() }()
	defer func() {
		err = errors.Join(err, log.Close())
		if !ran {
			_ = os.Remove(file) // the file is empty
		}
	}()
	env := h.env
	told := func() {}
	if o.llm != "" {
		told = h.watchModel(log)
		if o.llm == "environment" {
			h.tellVendors(log)
		}
		recorder, err := fakellm.Record(h.upstreams(o.llm, log))
		if err != nil {
			return err
		}
		env = pointed(env, recorder.URL())
		_, stop := keepScript(recorder, log, scriptOf(file)) // errors are reported at the end, because the session goes on
		defer func() { err = errors.Join(err, stop()) }()
	}
	whole, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	home, _ := h.getenv("HOME") // without a HOME, the recording notes none
	proxy := replay.Proxy{
		Judge: acpV1().judge(""),
		Home:  home, NoFiles: o.noFiles || o.maskText, Model: o.llm != "",
		Agent: mockclient.Command{Path: agents.Home(argv[0]), Args: argv[1:], Env: env, Dir: h.cwd,
			Keeper:     []string{h.self, "keeper"},
			TrimOnExit: whole},
		In: h.in, Out: h.out, Err: h.err, Log: log, Signals: signals, Live: live,
	}
	gone := func(transport.Exit) {}
	if o.ring != "" {
		gone, release = h.inRing(o, &proxy, file)
	}
	before := log.Len()
	// The context is not the command's: a signal is forwarded to the agent, which may survive it.
	exit, err := proxy.Run(context.Background())
	ran = log.Len() > before+1 // the note with the recording's file name does not count
	told()
	gone(exit)
	switch {
	case err != nil:
		return err
	case exit.Signal != "":
		return endBy(exit.Signal)
	}
	return ended(exit.Code)
}

// recordingLog returns the transcript of a recording and the name of its file. The transcript writes each entry to
// the file before the frame is forwarded.
func (h *host) recordingLog(o *recording, of protocol, agent string) (*transcript.Transcript, string, error) {
	redaction := replay.Redaction{Protocol: of.recordings, Known: secret.New(h.env...), KeepText: o.keepText,
		MaskText: o.maskText}
	for _, p := range o.redact {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, "", fmt.Errorf("--redact: %w", err)
		}
		redaction.Patterns = append(redaction.Patterns, re)
	}
	file, err := reserve(o.out, agent)
	if err != nil {
		return nil, "", err
	}
	if strings.HasPrefix(file, strings.TrimSuffix(o.out, filepath.Ext(o.out))+"-") {
		fmt.Fprintf(h.err, "acp-test: %s exists already, so this session is recorded in %s\n", o.out, file)
	}
	log, err := transcript.New(transcript.Header{Tool: tool(), Agent: agent, Protocol: of.Version},
		transcript.Options{Classifier: of.Classifier, Path: file, Through: true, Memory: 8 << 20,
			Redact: redaction.Func(), Failed: func(err error) {
				fmt.Fprintf(h.err, "acp-test: recording in %s stopped; messages are still passed on: %v\n",
					file, err)
			}})
	return log, file, err
}

// reserve creates an empty file for a recording, readable only by the user. If out is a folder, it chooses the name;
// if out exists, it adds a number.
func reserve(out, agent string) (string, error) {
	info, err := os.Stat(out)
	if err == nil && info.IsDir() || strings.HasSuffix(out, "/") {
		if err := os.MkdirAll(out, 0o700); err != nil {
			return "", fmt.Errorf("--out: %w", err)
		}
		out = filepath.Join(out, time.Now().Format("2006-01-02T15-04-05")+"-"+agent+".jsonl")
	}
	ext := filepath.Ext(out)
	for n := 1; ; n++ {
		name := out
		if n > 1 {
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(out, ext), n, ext)
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		switch {
		case err == nil:
			return name, f.Close()
		case !errors.Is(err, os.ErrExist):
			return "", fmt.Errorf("--out: %w", err)
		}
	}
}

// live returns the writer for findings during the session. to is "stderr" or the path of a Unix socket; "" returns
// nil.
func (h *host) live(to string) (io.Writer, error) {
	switch to {
	case "":
		return nil, nil
	case "stderr":
		return h.err, nil
	}
	c, err := net.Dial("unix", to)
	if err != nil {
		return nil, fmt.Errorf("--live: %w", err)
	}
	return c, nil
}

// provider describes a model provider. variable is the environment variable from which agents read its base URL. wire
// is the wire format of that URL, and path is the path that the variable's value needs. vendor is the vendor's
// default address.
type provider struct{ variable, wire, path, vendor string }

// providers returns the model providers whose address agents read from a variable.
func providers() []provider {
	return []provider{
		{"OPENAI_BASE_URL", fakellm.OpenAIChat, "/v1", "https://api.openai.com"},
		{"OPENAI_BASE_URL", fakellm.OpenAIResponses, "/v1", "https://api.openai.com"},
		{"ANTHROPIC_BASE_URL", fakellm.Anthropic, "", "https://api.anthropic.com"},
		{"GOOGLE_GEMINI_BASE_URL", fakellm.Gemini, "", "https://generativelanguage.googleapis.com"},
	}
}

// upstreams returns the addresses to which the recorder forwards the agent's model requests. The url "environment"
// selects the addresses in the user's environment, or else those of the vendors.
func (h *host) upstreams(url string, log *transcript.Transcript) fakellm.RecordConfig {
	c := fakellm.RecordConfig{Transcript: log, Transport: wayOut()}
	if url != "environment" {
		c.Upstream = url
		return c
	}
	c.Upstreams = map[string]string{}
	for _, p := range providers() {
		c.Upstreams[p.wire] = p.vendor
		if set, ok := h.getenv(p.variable); ok && set != "" {
			c.Upstreams[p.wire] = set
		}
	}
	return c
}

// pointed returns env with the base URLs of all providers set to url. Each variable occurs only once, because
// runtimes treat duplicates differently.
func pointed(env []string, url string) []string {
	values := map[string]string{}
	for _, p := range providers() {
		values[p.variable] = url + p.path
	}
	return replaced(env, values)
}

// notAsked is the code of a note in a recording: the agent sent no model request through the recorder.
const notAsked = "model-not-asked"

// tell prints a message to the user of the editor, and logs it in the recording.
func (h *host) tell(log *transcript.Transcript, code, text string) {
	fmt.Fprintf(h.err, "acp-test: %s\n", text)
	log.Event(0, transcript.Note, transcript.Noted, "", map[string]any{"code": code, "text": text})
}

// tellVendors warns the user that model requests go to a vendor's default address if no variable sets another one.
func (h *host) tellVendors(log *transcript.Transcript) {
	var unset []string
	for _, p := range providers() {
		if set, _ := h.getenv(p.variable); set == "" {
			unset = append(unset, fmt.Sprintf("%s is not set: %s", p.variable, p.vendor))
		}
	}
	if len(unset) > 0 {
		h.tell(log, "model-vendor", "model requests go to the vendor's address, unless --llm=URL names another ("+
			strings.Join(slices.Compact(unset), "; ")+")")
	}
}

// watchModel watches for model requests. The caller must call end when the recording ends. end warns the user if the
// editor sent a prompt but no model request came.
func (h *host) watchModel(log *transcript.Transcript) (end func()) {
	var prompted, asked atomic.Bool
	p := recordings.V1()
	log.Observe(func(e transcript.Entry) {
		switch {
		case e.Kind == transcript.ModelRequest:
			asked.Store(true)
		case e.Source == transcript.Editor && e.Kind == transcript.Request:
			if _, ok := p.Prompt(e); ok {
				prompted.Store(true)
			}
		}
	})
	return func() {
		if !prompted.Load() || asked.Load() {
			return
		}
		names := lists.Map(providers(), func(p provider) string { return p.variable })
		h.tell(log, notAsked, "the agent sent no model request through the recorder, so no model reply was saved; "+
			"if the agent reads the model's address from a file, write into that file the value of "+
			strings.Join(slices.Compact(names), ", ")+", which record sets for the agent")
	}
}

// neverAsked reports whether a recording contains the note that the agent sent no model request through the recorder.
func neverAsked(t *transcript.Transcript) bool {
	return lists.Any(t.All(), func(e transcript.Entry) bool {
		return e.Kind == transcript.Noted && e.JSON().Get("code").Is(notAsked)
	})
}

// recordWeb records the traffic between clients and a server until it is interrupted. The default protocol is AG-UI.
// For a URL with the scheme ws it is ACP, because AG-UI does not use WebSockets.
func (h *host) recordWeb(ctx context.Context, o *recording) (err error) {
	usual, at := agui.Name, o.url
	if socket, ok := strings.CutPrefix(at, "ws"); ok {
		usual, at = acpV1().Name, "http"+socket
	}
	of, err := protocolNamed(cmp.Or(h.protocol, usual))
	if err != nil {
		return err
	}
	target, err := endpoint.Target(at)
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer listener.Close()
	log, file, err := h.recordingLog(o, of, "endpoint")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	var tap interface {
		http.Handler
		Wait()
	}
	path := "/"
	if of.Name == agui.Name {
		tap = endpoint.NewTap(target, log)
	} else {
		tap, path = remote.NewRecorder(target, log), cmp.Or(target.Path, path)
	}
	fmt.Fprintf(h.err, "recording http://%s%s in %s\n", listener.Addr(), path, file)
	if err := serveHTTP(ctx, listener, tap); err != nil {
		return err
	}
	tap.Wait()
	return nil
}

// serveHTTP serves clients on this machine until ctx ends. It does not wait for open requests.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: loopback.Guard(handler), ReadHeaderTimeout: 30 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
