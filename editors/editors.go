// Package editors runs clients, such as editors, against a scripted agent and judges their behaviour.
package editors

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/acp-test/acp-test/internal/loopback"
	"github.com/acp-test/acp-test/internal/printable"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/internal/workspace"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// Bench is the environment in which clients are judged. All fields are required
// except Front.
type Bench struct {
	// Self is the path of this program. The program serves as the client's keeper and as the agent that the client
	// starts.
	Self string
	// Env is the environment of the client. HOME and the variables with the agent's command are added.
	Env []string
	// Tool is the name and version of this program.
	Tool string
	// Timeout limits one scenario.
	Timeout time.Duration
	Judge   replay.Judge
	// Protocol is the name of the protocol that the agent speaks.
	Protocol string
	// Front returns a server for an agent that is an HTTP endpoint. If nil, the client starts the agent itself.
	Front func(script *serve.Script, log *transcript.Transcript) *serve.Web
	// Quote joins words to a command line for a shell, with quotes where needed. Read reads a recording of the
	// protocol.
	Quote func(words []string) string
	Read  func(file string) (*transcript.Transcript, error)
}

// judgedOutput is the number of bytes of a client's output that are judged. keptOutput is the number of bytes that
// are kept of stdout, and of stderr.
const (
	judgedOutput = 1 << 20
	keptOutput   = 64 << 20
)

// Run runs one scenario with a client, and writes the evidence to the folder out.
func (b *Bench) Run(ctx context.Context, s *scenarios.Scenario, client []string, out string) (res results.Result,
	err error) {
	res = results.Result{ID: s.ID, File: s.File, Title: s.Title, Tags: s.Tags, Started: time.Now()}
	agentOut := filepath.Join(out, "agent")
	if err := os.MkdirAll(agentOut, 0o755); err != nil {
		return res, err
	}
	file := s.File
	if s.Suite != "" {
		file = s.ID
	} else if file, err = filepath.Abs(file); err != nil {
		return res, err
	}
	temp, err := process.NewTempDir([]string{b.Self, "keeper"}, "", "")
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	dirs, err := workspace.MakeDirs(temp.Dir())
	if err != nil {
		return res, err
	}
	if err := workspace.Write(dirs.Work, s.Workspace); err != nil {
		return res, err
	}
	log, err := transcript.New(transcript.Header{Tool: b.Tool, Scenario: s.ID},
		transcript.Options{Classifier: b.Judge.Protocol})
	if err != nil {
		return res, err
	}
	defer log.Close()
	words := []string{b.Self, "serve", file, "--protocol", b.Protocol, "--quiet", "--out", agentOut}
	front, err := b.front(s, client, log, words, filepath.Join(agentOut, filepath.Base(s.ID)+".jsonl"))
	if err != nil {
		return res, err
	}
	if front != nil {
		defer func() { err = errors.Join(err, front.Close()) }()
		words = []string{front.url}
	}
	argv, seen := b.expand(client, words), filepath.Join(out, "seen.jsonl")
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	left, ended, late, err := b.run(ctx, log, transport.Command{
		Path: argv[0], Args: argv[1:], Dir: dirs.Work, Keeper: []string{b.Self, "keeper"},
		Env: append(append([]string{}, b.Env...), "HOME="+dirs.Home, replay.EnvSeen+"="+seen,
			"ACP_TEST_AGENT="+b.Quote(words),
			"ACP_TEST_SCENARIO="+s.ID),
	}, out)
	if err != nil {
		return res, err
	}
	if front != nil {
		if err := front.Close(); err != nil {
			return res, err
		}
	}
	sessions, err := b.sessionsIn(agentOut)
	if err != nil {
		return res, err
	}
	if len(sessions) > 0 {
		last := &sessions[len(sessions)-1]
		last.Left, last.Ended, last.Seen = left, ended, &replay.Seen{Late: late}
		if err := evidence(last, seen, filepath.Join(out, "client.stdout")); err != nil {
			return res, err
		}
	}
	began := res.Started
	res = b.Judge.Editor(res, s.Agent, sessions)
	if len(sessions) == 0 {
		res.Reason = neverStarted(res.Reason, ended, filepath.Join(out, "client.stderr"))
	}
	res.Duration = time.Since(began)
	if late && res.Verdict != results.Error {
		// This is not a failure, because no rule says when a client must end.
		res.Verdict = results.Worst(res.Verdict, results.Inconclusive)
		res.Reason = fmt.Sprintf("the client was still running after %v, and was ended", b.Timeout)
	}
	res.Artifacts = map[string]string{"stderr": s.ID + "/client.stderr"}
	for _, t := range sessions {
		_ = t.Log.Close() // loaded from a file, so Close writes nothing
	}
	return res, nil
}

// neverStarted returns the reason why a client started no agent. If ended is "", the client did not fail, and the
// reason is the text usual. Otherwise the reason is ended, followed by the last line of the client's file stderr.
func neverStarted(usual, ended, stderr string) string {
	if ended == "" {
		return usual
	}
	text, _ := os.ReadFile(stderr) // without a readable file, nothing is quoted
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	why := "the client " + ended + " before it started the agent"
	if last := lines[len(lines)-1]; last != "" {
		why += ": " + printable.Line(last, 200) + " (it runs in a folder of its own: its files need absolute paths)"
	}
	return why
}

// evidence adds the client's output to a session. It also adds the client's account, which is a file in which the
// client recorded what its user saw.
func evidence(s *replay.Session, account, stdout string) (err error) {
	if s.Seen.Late { // the client was killed and did not end by itself
		s.Ended = ""
	}
	if s.Account, err = replay.AccountIn(account); err != nil {
		return err
	}
	printed, err := os.ReadFile(stdout)
	s.Seen.Printed = string(printed[:min(len(printed), judgedOutput)])
	return err
}

// run runs the client to its end. left describes the agent's processes that outlived the client. ended says how the
// client failed, or is "". late is true if the client had to be killed.
func (b *Bench) run(ctx context.Context, log *transcript.Transcript, c transport.Command, out string) (left []string,
	ended string, late bool, err error) {
	p, err := transport.StartPiped(context.WithoutCancel(ctx), log, 0, c)
	if err != nil {
		return nil, "", false, err
	}
	stop := context.AfterFunc(ctx, p.Kill)
	p.Stdin.Close()
	known, copied := secret.New(b.Env...), make(chan error, 2)
	for name, from := range map[string]io.Reader{"client.stdout": p.Stdout, "client.stderr": p.Stderr} {
		go func() {
			w, err := os.Create(filepath.Join(out, name))
			if err == nil {
				err = errors.Join(keep(known.Writer(w), from), w.Close())
			}
			copied <- err
		}()
	}
	exit, survivors := p.Wait()
	late = !stop()
	err = errors.Join(<-copied, <-copied)
	p.Stdout.Close()
	p.Stderr.Close()
	for _, s := range survivors {
		if strings.Contains(s.Command, b.Self) {
			left = append(left, s.Command)
		}
	}
	return left, exit.Failure(), late, err
}

// keep copies about keptOutput bytes of its input to w. It writes whole lines, so that no secret is split between two
// writes. It also reads and discards the rest, so that the client never blocks on a full pipe.
func keep(w io.Writer, from io.Reader) error {
	lines := bufio.NewReaderSize(from, 64<<10)
	for kept := 0; kept < keptOutput; {
		line, err := lines.ReadSlice('\n')
		if _, failed := w.Write(line); failed != nil {
			return failed
		}
		kept += len(line)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	_, err := io.Copy(io.Discard, lines)
	return err
}

// sessionsIn returns the sessions in the transcripts that our agent wrote to dir, oldest first.
func (b *Bench) sessionsIn(dir string) ([]replay.Session, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var out []replay.Session
	for _, f := range files {
		t, err := b.Read(f)
		if err != nil {
			return nil, err
		}
		out = append(out, replay.Session{Log: t})
	}
	return out, nil
}

// atURL and atSocket are the placeholders for the URL of an agent that runs as a server: atURL over HTTP, atSocket
// over WebSocket.
const atURL, atSocket = "{url}", "{ws}"

// overNetwork reports whether a client's command line reaches the agent over a network.
func overNetwork(client []string) bool {
	line := strings.Join(client, " ")
	return strings.Contains(line, atURL) || strings.Contains(line, atSocket)
}

// expand replaces the placeholders in the client's command line: {agent} by the agent's command, the others by the
// agent's URL.
func (b *Bench) expand(client, agent []string) []string {
	var out []string
	for _, w := range client {
		if w == "{agent}" {
			out = append(out, agent...)
		} else {
			out = append(out, strings.NewReplacer("{agent}", b.Quote(agent), atURL, agent[0],
				atSocket, strings.Replace(agent[0], "http", "ws", 1)).Replace(w))
		}
	}
	return out
}

// served is an agent's endpoint that serves one client.
type served struct {
	url   string
	close func() error
}

// front serves an agent that the client reaches at a URL. It returns nil if the
// client starts the agent itself.
func (b *Bench) front(s *scenarios.Scenario, client []string, log *transcript.Transcript, words []string, file string,
) (*served, error) {
	switch {
	case b.Front != nil:
		return b.listen(s, file)
	case overNetwork(client):
		return b.serve(log, append(words, "--listen", "127.0.0.1:0"))
	}
	return nil, nil
}

// listen serves the scenario's agent as an HTTP endpoint and writes its transcript to a file.
func (b *Bench) listen(s *scenarios.Scenario, file string) (*served, error) {
	log, err := transcript.New(transcript.Header{Tool: b.Tool, Scenario: s.ID, Protocol: b.Judge.Protocol.Version()},
		transcript.Options{Classifier: b.Judge.Protocol, Path: file, Through: true, Memory: 16 << 20})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	web := b.Front(&s.Agent.Script, log)
	server := &http.Server{Handler: loopback.Guard(web)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(l) // Serve's error only says that the server was closed
	}()
	end := sync.OnceValue(func() error {
		err := server.Close()
		<-over
		web.Wait()
		if web.Posts() == 0 { // no run was requested: no evidence that the client used the agent
			return errors.Join(err, log.Close(), os.Remove(file))
		}
		return errors.Join(err, log.Close())
	})
	return &served{url: "http://" + l.Addr().String() + "/", close: end}, nil
}

// serve starts an agent that is a server, and reads the server's URL from stderr.
func (b *Bench) serve(log *transcript.Transcript, words []string) (*served, error) {
	p, err := transport.StartPiped(context.Background(), log, 0, transport.Command{Path: words[0], Args: words[1:],
		Keeper: []string{b.Self, "keeper"}, Env: b.Env})
	if err != nil {
		return nil, err
	}
	p.Stdin.Close()
	said := bufio.NewReader(p.Stderr)
	line, err := said.ReadString('\n')
	at := strings.Index(line, "http://")
	if at < 0 {
		p.Kill()
		err = cmp.Or(err, fmt.Errorf("the agent says no URL, but %q", line))
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, said) // its messages are also in the server's transcript
		p.Wait()
		p.Stdout.Close()
		p.Stderr.Close()
	}()
	end := func() error {
		defer time.AfterFunc(3*time.Second, p.Kill).Stop() // the agent ends by itself after the client has left
		<-over
		return nil
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return &served{url: strings.TrimSpace(line[at:]), close: end}, nil
}

// Close stops the endpoint and closes open connections.
func (s *served) Close() error { return s.close() }
