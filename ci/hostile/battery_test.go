//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

var (
	updating = flag.Bool("update", false, "add to expected.txt what is not in it instead of comparing")
	whole    = flag.Bool("whole", false, "run all modes, not only the part that is for every change")
	// Where much else runs, only that a run ends can be said, not how fast.
	grace = flag.Duration("grace", time.Minute, "how long a run may take beyond the limit of its scenario")
)

// What holds of every run, whatever its agent does.
const (
	mostBytes = 300 << 20 // memory of acp-test
	key       = "pl4nt3d/S3cr3t+key\"zq81?x"
)

// lab is where runs happen: the programs, built once for all tests.
type lab struct{ tool, agent string }

var built struct {
	sync.Once
	lab
	dir string
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // it is a temporary one
	}
	os.Exit(code)
}

func newLab(t *testing.T) lab {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "hostile-"); built.err != nil {
			return
		}
		built.lab = lab{filepath.Join(built.dir, "acp-test"), filepath.Join(built.dir, "hostile")}
		for path, pkg := range map[string]string{built.tool: "../../cmd/acp-test", built.agent: "."} {
			if text, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
				built.err = fmt.Errorf("building %s: %w\n%s", pkg, err, text)
				return
			}
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.lab
}

// outcome is what came of one run.
type outcome struct {
	dir, out       string
	exit           int
	stdout, stderr string
	took           time.Duration
	memory         int64
	left           []string // processes of the agent
}

func (l lab) run(t *testing.T, m mode) (o outcome) {
	t.Helper()
	o.dir = t.TempDir()
	o.out = filepath.Join(o.dir, "out")
	temp, outside := filepath.Join(o.dir, "tmp"), filepath.Join(o.dir, "outside")
	for _, d := range []string{temp, outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	victim := filepath.Join(outside, "victim")
	script := "# A turn.\nfurther off 'the first turn is what is judged'\n" +
		"rules off MODEL-TEXT 'none of these agents tells what its model says'\n" +
		"check turn\nprompt 'Say hello.'\nawait turn end_turn\n"
	lines, archive, _ := strings.Cut(m.script, "-- ")
	if archive != "" {
		archive = "-- " + archive
	}
	script += lines + "-- llm.yaml --\nreplies:\n  - - text: Hello.\n" + archive
	for path, text := range map[string]string{filepath.Join(o.dir, "mode.txtar"): script, victim: "untouched\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	timeout := cmp.Or(m.timeout, 6*time.Second)
	words := append([]string{"run", "mode.txtar", "--out", o.out, "--timeout", timeout.String(), "--step-timeout", "4s",
		"--env", "HOSTILE_OUT=" + o.out, "--env", "HOSTILE_OUTSIDE=" + outside, "--env", "HOSTILE_TMP=" + temp,
		"--env", "HOSTILE_API_KEY=" + key}, m.flags...)
	// What ends is a run that did not, for the report: it is a failure.
	ctx, cancel := context.WithTimeout(t.Context(), timeout+*grace+time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, l.tool, append(words, "--", l.agent, m.name)...)
	c.Dir = o.dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + o.dir, "TMPDIR=" + temp,
		"HARNESS_SECRET=HOSTILE-harness-secret"}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr, c.WaitDelay = &stdout, &stderr, time.Second
	// The harness may be stopped by its agent, and is no part of our group.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return c.Process.Kill() }
	began := time.Now()
	err := c.Start()
	if err != nil {
		t.Fatal(err)
	}
	peak := watchMemory(c.Process.Pid)
	err = c.Wait()
	o.took = time.Since(began)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatal(err)
	}
	o.exit, o.stdout, o.stderr = c.ProcessState.ExitCode(), stdout.String(), stderr.String()
	o.memory = <-peak
	for range 100 {
		if o.left = l.living(); len(o.left) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond) // those that are killed take a moment
	}
	return o
}

// watchMemory tells the most memory that a process had, in bytes, when it has ended.
// What wait4 gives would be that of the test before exec.
func watchMemory(pid int) <-chan int64 {
	peak := make(chan int64, 1)
	go func() {
		most := int64(0)
		for {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, text, found := strings.Cut(string(status), "\nVmHWM:")
			if err != nil || !found { // it has ended
				peak <- most << 10
				return
			}
			var now int64
			_, _ = fmt.Sscan(text, &now)
			most = max(most, now)
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return peak
}

// living lists the processes of the agent.
func (l lab) living() []string { return processesOf(l.agent) }

// end kills what a run left, however fast it forks.
func (l lab) end() {
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGSTOP, syscall.SIGSTOP, syscall.SIGKILL,
		syscall.SIGKILL} {
		for _, p := range l.living() {
			var pid int
			if _, err := fmt.Sscan(p, &pid); err == nil {
				_ = syscall.Kill(pid, s)
			}
		}
	}
}

// acts are beginnings of lines, and bytes, with which text acts on a terminal or a
// CI system.
var acts = regexp.MustCompile(`(?m)^\s*(::[a-z-]+|##vso\[|##teamcity\[|##\[)|##vso\[`)

func printable(text string) error {
	if at := acts.FindString(text); at != "" {
		return fmt.Errorf("%q", at)
	}
	return controls(text)
}

func controls(text string) error {
	for i, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' ||
			r == '\u2029') {
			return fmt.Errorf("%q at %q", r, text[max(i-20, 0):min(i+20, len(text))])
		}
	}
	return nil
}

// holds checks what must be so of every run.
func (o outcome) holds(t *testing.T, m mode) {
	t.Helper()
	limit := cmp.Or(m.timeout, 6*time.Second) + *grace
	if o.took > limit {
		t.Errorf("it took %v, more than %v", o.took.Round(time.Millisecond), limit)
	}
	if o.memory > mostBytes {
		t.Errorf("it took %d MiB of memory", o.memory>>20)
	}
	if len(o.left) > 0 {
		t.Errorf("%d processes are left: %q", len(o.left), o.left[:min(len(o.left), 5)])
	}
	if temp, _ := os.ReadDir(filepath.Join(o.dir, "tmp")); len(temp) > 0 {
		t.Errorf("left in the temporary directory: %v", temp)
	}
	for _, x := range []struct{ name, text string }{{"stdout", o.stdout}, {"stderr", o.stderr}} {
		if err := printable(x.text); err != nil {
			t.Errorf("%s acts: %v", x.name, err)
		}
	}
	if victim, err := os.ReadFile(filepath.Join(o.dir, "outside", "victim")); err != nil ||
		string(victim) != "untouched\n" {
		t.Errorf("a file outside was changed: %.100q %v", victim, err)
	}
	if all, _ := os.ReadDir(filepath.Join(o.dir, "outside")); len(all) != 1 {
		t.Errorf("files were made outside: %v", all)
	}
	if strings.Contains(o.stdout+o.stderr, "panic") || strings.Contains(o.stderr, "goroutine ") {
		t.Errorf("it panicked: %s", o.stderr)
	}
	o.keepsSecrets(t)
	if m.breaks && o.exit != 0 { // without evidence, no pass
		return
	}
	for _, name := range []string{"results.json", "junit.xml", "report.html", "mode/transcript.jsonl"} {
		if info, err := os.Stat(filepath.Join(o.out, name)); err != nil || info.Size() == 0 {
			t.Errorf("there is no %s: %v", name, err)
		}
	}
	file, err := os.Open(filepath.Join(o.out, "mode", "transcript.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if log, err := transcript.Load(file, nil); err != nil || log.Torn() {
		t.Errorf("the transcript is torn or cannot be read: %v", err)
	}
}

// keepsSecrets looks for the planted secret in all that was written.
func (o outcome) keepsSecrets(t *testing.T) {
	t.Helper()
	look := func(where, text string) {
		for name, form := range secretForms(key) {
			if strings.Contains(text, form) {
				t.Errorf("the secret is in %s: %s", where, name)
			}
		}
		if strings.Contains(text, "HOSTILE-harness-secret") {
			t.Errorf("the harness's environment is in %s", where)
		}
	}
	look("stdout", o.stdout)
	look("stderr", o.stderr)
	_ = filepath.WalkDir(o.out, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if text, err := os.ReadFile(path); err == nil {
				look(filepath.Base(path), string(text))
			}
		}
		return nil
	})
}

var numbers = regexp.MustCompile(`\d{2,}(\.\d+)?`)

// says is what a run says of its agent: the exit status, the verdict and its
// reasons, without what differs from run to run.
func (o outcome) says() string {
	var b strings.Builder
	fmt.Fprintf(&b, "exit %d\n", o.exit)
	line := func(s string) {
		s = strings.NewReplacer(o.dir, "$DIR").Replace(strings.ReplaceAll(s, "\n", " "))
		if r := []rune(numbers.ReplaceAllString(s, "N")); len(r) > 160 {
			s = string(r[:160]) + "…"
		} else {
			s = string(r)
		}
		b.WriteString(strings.TrimRight(s, " ") + "\n")
	}
	for l := range strings.Lines(o.stderr) {
		line("stderr: " + l)
	}
	raw, err := confined.ReadBelow(o.out, "results.json") // an agent may have put anything there
	var run results.Run
	if err == nil {
		err = json.Unmarshal(raw, &run)
	}
	if err != nil {
		line("no results: " + strings.ReplaceAll(err.Error(), o.dir, "$DIR"))
		return b.String()
	}
	if len(run.Results) == 0 {
		line("notes: " + strings.Join(run.Notes, "; "))
	}
	for _, r := range run.Results {
		line(r.Verdict.String() + ": " + r.Reason)
		if r.Failure != nil {
			line("failure: " + r.Failure.Error())
		}
		for _, c := range r.Checks {
			text := "check " + c.Slug + " " + c.Verdict.String()
			if c.Failure != nil {
				text += ": " + c.Failure.Error()
			}
			line(text)
		}
		var rules []string
		for _, f := range r.Findings {
			if f.Class != results.Lint { // some say how long something took
				rules = append(rules, f.Class.String()+" "+f.Rule)
			}
		}
		slices.Sort(rules)
		for _, f := range slices.Compact(rules) {
			line(f)
		}
	}
	return b.String()
}

// quick are the modes for every change: some of each kind, none that takes long.
const quick = `start-endless-line turn-daemon-without-environment turn-chain turn-keeper-stopped
	inject-github inject-escape secret-base64 secret-environ file-fifo evidence-out-removed ` +
	`evidence-transcript-is-a-link
	fs-read-passwd turn-id-of-5000-digits model-foreign-host isolated-files`

const expectedFile = "expected.txt"

// expected are the texts that a run may say of each mode: of a flood it depends on the
// machine which of its limits is reached first.
func expected(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	raw, err := os.ReadFile(expectedFile)
	if err != nil && !*updating {
		t.Fatal(err)
	}
	for section := range strings.SplitSeq("\n"+string(raw), "\n-- ") {
		if name, text, ok := strings.Cut(section, " --\n"); ok {
			all[name] = append(all[name], strings.TrimRight(text, "\n")+"\n")
		}
	}
	return all
}

// Each hostile agent ends in its time, in bounded memory, with its reports and one
// clear message, and leaves nothing.
func TestBattery(t *testing.T) {
	l := newLab(t)
	all, want := modes(), expected(t)
	for _, m := range all {
		if !*whole && !slices.Contains(strings.Fields(quick), m.name) && flag.Lookup("test.run").Value.String() == "" {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			defer l.end()
			o := l.run(t, m)
			o.holds(t, m)
			got := o.says()
			t.Logf("%v, %d MiB", o.took.Round(10*time.Millisecond), o.memory>>20)
			switch {
			case slices.Contains(want[m.name], got):
			case *updating:
				want[m.name] = append(want[m.name], got)
			default:
				t.Errorf("it says\n%swant\n%s", got, strings.Join(want[m.name], "or\n"))
			}
		})
	}
	if *updating {
		var b strings.Builder
		b.WriteString("What a run says of each hostile agent, one text or the other:\n" +
			"go test ./ci/hostile -whole -update adds what is not here.\n")
		for _, m := range all {
			for _, text := range want[m.name] {
				fmt.Fprintf(&b, "-- %s --\n%s", m.name, text)
			}
		}
		if err := os.WriteFile(expectedFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
