package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
)

// ring limits the number, size and age of the recordings in a folder.
type ring struct {
	count int
	size  int64         // bytes of all recordings together
	age   time.Duration // 0 means no limit
}

// defaultRing is the value of --ring without a value: at most 20 recordings, 50 MB in all, none older than 30 days.
const defaultRing = "20,50MB,30d"

var ringOf = lazy.Regexp(`^([1-9]\d{0,5}),([1-9]\d{0,5})MB(?:,([1-9]\d{0,4})d)?$`)

func parseRing(text string) (r ring, err error) {
	m := ringOf().FindStringSubmatch(text)
	if m == nil {
		return r, fmt.Errorf("--ring %s: expected COUNT,SIZE or COUNT,SIZE,AGE, such as %s",
			text, defaultRing)
	}
	r.count, _ = strconv.Atoi(m[1]) // the pattern allows only numbers
	size, _ := strconv.Atoi(m[2])
	days, _ := strconv.Atoi(m[3])
	r.size, r.age = int64(size)<<20, time.Duration(days)*24*time.Hour
	return r, nil
}

// recordings returns the folder where installed recorders write: HOME/.local/state/acp-test/recordings, or
// acp-test/recordings below XDG_STATE_HOME.
func (h *host) recordings() string {
	state, _ := h.getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, _ := h.getenv("HOME")
		state = filepath.Join(cmp.Or(home, h.cwd), ".local", "state")
	}
	return filepath.Join(state, "acp-test", "recordings")
}

var dated = lazy.Regexp(`^\d{4}(-\d\d){2}T\d\d(-\d\d){2}-.*\.jsonl$`)

// recorded returns the recordings in a folder, newest first. It skips files whose names do not begin with a date.
func recorded(dir string) ([]os.FileInfo, error) {
	list, err := os.ReadDir(dir)
	var all []os.FileInfo
	for _, e := range list {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && dated().MatchString(e.Name()) {
			all = append(all, info)
		}
	}
	slices.SortStableFunc(all, func(a, b os.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(b.Name(), a.Name()))
	})
	return all, err
}

// trim removes the oldest recordings in dir until the rest is within the limits. It never removes the newest
// recording, and it shortens recordings larger than half of the size limit. It skips recordings that are still being
// written; each has a lock file in the folder writers.
func (r ring) trim(dir, writers string) error {
	all, err := recorded(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	size := int64(0)
	for i, info := range all {
		size += min(info.Size(), r.size/2)
		over := i > 0 && (i >= r.count || size > r.size || r.age > 0 && time.Since(info.ModTime()) > r.age)
		if !over && info.Size() <= r.size/2 {
			continue
		}
		file, lock := filepath.Join(dir, info.Name()), flock.New(lockOf(filepath.Join(writers, info.Name())))
		if free, _ := lock.TryLock(); !free {
			continue
		}
		if over {
			err = errors.Join(err, os.Remove(file))
			_ = os.Remove(scriptOf(file)) // most recordings have no script
		} else {
			err = errors.Join(err, shorten(file, info, r.size/2))
		}
		err = errors.Join(err, lock.Unlock())
		_ = os.Remove(lock.Path())
	}
	return err
}

// prompted matches the beginning of a recorded line with a session/prompt request of the editor.
var prompted = lazy.Regexp(`(?m)^[^\n]{0,99}"from":"editor","kind":"request",[^\n]{0,999}"method":"session/prompt"`)

// shorten removes turns from the middle of a recording until it has at most size bytes. It keeps the part before the
// first prompt, and the last turns. A line that is not an entry marks the gap, so that the rules draw no conclusions
// from it.
func shorten(file string, info os.FileInfo, size int64) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	text := make([]byte, size)
	if _, err := io.ReadFull(f, text[:size/2]); err != nil {
		return err
	}
	begins := text[:size/2]
	if at := prompted().FindIndex(begins); at != nil {
		begins = begins[:at[0]]
	}
	begins = begins[:bytes.LastIndexByte(begins, '\n')+1]
	begins = fmt.Appendf(begins, "%d bytes in all, shortened by acp-test record --ring\n", info.Size())
	last := text[len(begins):]
	if _, err := f.ReadAt(last, info.Size()-int64(len(last))); err != nil {
		return err
	}
	last = last[bytes.IndexByte(last, '\n')+1:]
	if at := prompted().FindIndex(last); at != nil {
		last = last[at[0]:]
	}
	return errors.Join(replaceFile(file, append(begins, last...), info.Mode().Perm()),
		os.Chtimes(file, info.ModTime(), info.ModTime()))
}

// inRing adds a new recording to a ring and keeps the recording if a problem occurs. The caller must call ended when
// the agent has ended, and release when the recording is closed.
func (h *host) inRing(o *recording, proxy *replay.Proxy, file string) (ended func(transport.Exit), release func()) {
	bounds, _ := parseRing(o.ring) // check has already validated o.ring
	lock := flock.New(lockOf(file))
	_, locked := lock.TryLock() // no other process knows the file yet
	trim := func() {
		err := errors.Join(locked, bounds.trim(o.out, o.out), bounds.trim(filepath.Join(o.out, "kept"), o.out))
		if err != nil {
			fmt.Fprintf(h.err, "acp-test: could not remove old recordings: %v\n", err)
		}
	}
	trim()
	t := &trouble{file: file, err: h.err, signals: make(chan os.Signal, 1)}
	signal.Notify(t.signals, passedOn()...)
	proxy.Found = t.found
	proxy.Log.Observe(t.sees)
	return t.ended, func() {
		signal.Stop(t.signals)
		_, _ = lock.Unlock(), os.Remove(lockOf(file))
		trim()
	}
}

// lockOf returns the path of the lock file of a recording. The lock is held while the recording is written.
func lockOf(recording string) string { return recording + ".lock" }

// keepRecording links a recording into the subfolder kept, which has limits of its own. It returns the path of the
// link. It returns an error if kept contains a different recording with this name.
func keepRecording(file string) (string, error) {
	kept := filepath.Join(filepath.Dir(file), "kept", filepath.Base(file))
	err := os.MkdirAll(filepath.Dir(kept), 0o700)
	if err == nil {
		err = os.Link(file, kept)
	}
	if errors.Is(err, fs.ErrExist) {
		old, _ := os.Stat(kept)
		if info, _ := os.Stat(file); os.SameFile(old, info) {
			return kept, nil
		}
	}
	return kept, err
}

// trouble keeps a recording when the first problem occurs, and tells the user the reason and the file.
type trouble struct {
	file    string
	err     io.Writer
	signals chan os.Signal // signals from the editor to the agent
	once    sync.Once
	said    sync.WaitGroup
}

func (t *trouble) is(format string, args ...any) {
	t.once.Do(func() {
		t.said.Go(func() { // in the background, because the editor may be slow to read stderr
			kept, err := keepRecording(t.file)
			if err != nil {
				fmt.Fprintf(t.err, "acp-test: %s cannot be kept: %v\n", t.file, err)
				return
			}
			fmt.Fprintf(t.err, "acp-test: kept %s: %s\n", kept, fmt.Sprintf(format, args...))
		})
	})
}

// sees keeps the recording if the agent sends an error response. The transcript may call it with its lock held.
func (t *trouble) sees(e transcript.Entry) {
	if e.Source != transcript.Agent || e.Kind != transcript.Response {
		return
	}
	if failed := e.JSON().Get("error"); failed.Exists() {
		t.is("the agent answered %s with error %s (#%d)", e.Method, failed.Get("code").Raw(), e.Seq)
	}
}

func (t *trouble) found(f rules.Finding) {
	if f.Class == rules.Fail {
		t.is("%s of the %s: %s", f.Rule, f.Side, f.Message)
	}
}

// ended keeps the recording if the agent exited with a failure and the editor had sent no signal.
func (t *trouble) ended(exit transport.Exit) {
	if failure := exit.Failure(); failure != "" && len(t.signals) == 0 {
		t.is("the agent %s", failure)
	}
	t.said.Wait()
}

func keepCommand(h *host) *cobra.Command {
	return command("keep", atMost(1), func(_ *cobra.Command, args []string) error {
		file := h.recordings()
		if len(args) > 0 {
			file = h.absolute(args[0])
		}
		if all, err := recorded(file); err == nil { // the file is a folder
			if len(all) == 0 {
				return fmt.Errorf("keep: %s holds no recording of record --ring", file)
			}
			file = filepath.Join(file, all[0].Name())
		} else if len(args) == 0 {
			return fmt.Errorf("keep: nothing is recorded in %s yet; acp-test record --install puts a recorder into "+
				"an editor", file)
		}
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("keep: %w", err)
		}
		kept, err := keepRecording(file)
		if err != nil {
			return fmt.Errorf("keep: %w", err)
		}
		fmt.Fprintln(h.out, kept)
		fmt.Fprintf(h.err, "for a bug report: acp-test reduce %s --issue bug.md -- AGENT…\n", quoted([]string{kept}))
		return nil
	})
}
