//go:build linux

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func files() []mode {
	work := func(name, script string, do func(dir string)) mode {
		return mode{name: "file-" + name, at: inTurn, script: script, timeout: 15 * time.Second,
			do: func(a *agent) { do(a.cwd) }}
	}
	shell := func(command string) func(string) {
		return func(dir string) {
			c := exec.Command("sh", "-c", command)
			c.Dir, c.Stderr = dir, os.Stderr
			_ = c.Run()
		}
	}
	cmp := "cmp x want/x\n-- want/x --\nx\n"
	return []mode{
		work("fifo", cmp, shell("mkfifo x")),
		work("fifo-exists", "exists x\n", shell("mkfifo x")),
		work("socket", cmp, func(dir string) { _, _ = net.Listen("unix", filepath.Join(dir, "x")) }),
		work("link-environ", cmp, shell("ln -s /proc/self/environ x")),
		work("link-zero", cmp, shell("ln -s /dev/zero x")),
		work("link-loop", cmp, shell("ln -s x x")),
		work("sparse-1T", cmp, shell("truncate -s 1T x")),
		work("sparse-6G", cmp, shell("truncate -s 6G x")),
		work("hard-link", cmp, shell(`ln /etc/passwd x || cp /etc/hostname x`)),
		work("directory", cmp, shell("mkdir x")),
		work("no-permission", cmp, shell("echo x >x; chmod 0 x")),
		work("attach-fifo", "prompt Again. attach=x\nawait turn\n", shell("mkfifo x")),
		work("deep", "", func(dir string) {
			for range 3000 {
				if unix.Mkdir("d", 0o755) != nil || unix.Chdir("d") != nil {
					_ = unix.Mkdir(filepath.Join(dir, "d"), 0o755)
					_ = unix.Chdir(filepath.Join(dir, "d"))
				}
			}
		}),
		work("directories-20000", "", func(dir string) {
			for n := range 20_000 {
				_ = os.Mkdir(filepath.Join(dir, strconv.Itoa(n)), 0o755)
			}
		}),
		work("workspace-gone", cmp, shell(`d=$PWD; cd /; rm -r "$d"`)),
		work("workspace-is-a-link", cmp, shell(`d=$PWD; cd /; rm -r "$d"; ln -s /etc "$d"`)),
		work("workspace-closed", "", shell("echo x >x; chmod 0 .")),
		work("exec-changed", "exec ./check.sh\n-- check.sh --\n#!/bin/sh\nexit 0\n",
			shell("printf '#!/bin/sh\\nsleep 1000 & exec sleep 1000\\n' >check.sh; chmod +x check.sh")),
		work("exec-floods", "exec ./check.sh\n-- check.sh --\n#!/bin/sh\nexit 0\n",
			shell("printf '#!/bin/sh\\nexec yes\\n' >check.sh; chmod +x check.sh")),
	}
}

// evidence returns agents that attack the folder of reports. An agent that runs as the same user can write to that
// folder.
func evidence() []mode {
	ruin := func(name string, s stage, do func()) mode {
		return mode{name: "evidence-" + name, at: s, breaks: true, do: func(*agent) { do() }}
	}
	return []mode{
		ruin("out-removed", inTurn, func() { _ = os.RemoveAll(out()) }),
		ruin("out-moved", inTurn, func() { _ = os.Rename(out(), out()+".moved") }),
		ruin("out-replaced", inTurn, func() { _ = os.RemoveAll(out()); _ = os.Mkdir(out(), 0o755) }),
		ruin("out-is-a-link", inTurn, func() {
			_ = os.RemoveAll(out())
			_ = os.Symlink(os.Getenv("HOSTILE_OUTSIDE"), out())
		}),
		ruin("scenario-removed", inTurn, func() { _ = os.RemoveAll(filepath.Join(out(), "mode")) }),
		ruin("scenario-is-a-link", inTurn, func() {
			_ = os.RemoveAll(filepath.Join(out(), "mode"))
			_ = os.Symlink(os.Getenv("HOSTILE_OUTSIDE"), filepath.Join(out(), "mode"))
		}),
		ruin("transcript-removed", inTurn, func() { _ = os.Remove(artifact("transcript.jsonl")) }),
		ruin("transcript-emptied", inTurn, func() { _ = os.Truncate(artifact("transcript.jsonl"), 0) }),
		ruin("transcript-overwritten", inTurn, func() {
			time.Sleep(100 * time.Millisecond)
			f, _ := os.OpenFile(artifact("transcript.jsonl"), os.O_WRONLY, 0)
			_, _ = f.WriteAt([]byte(strings.Repeat("#", 200)), 0)
		}),
		ruin("transcript-added-to", inTurn, func() {
			time.Sleep(100 * time.Millisecond)
			f, _ := os.OpenFile(artifact("transcript.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
			_, _ = f.WriteString(`{"seq":99,"src":"agent"}` + "\n")
		}),
		ruin("transcript-replaced", inTurn, func() {
			_ = os.Remove(artifact("transcript.jsonl"))
			_ = os.WriteFile(artifact("transcript.jsonl"), []byte("{}\n"), 0o644)
		}),
		ruin("transcript-is-a-link", inTurn, func() {
			_ = os.Remove(artifact("transcript.jsonl"))
			_ = os.Symlink(filepath.Join(os.Getenv("HOSTILE_OUTSIDE"), "victim"), artifact("transcript.jsonl"))
		}),
		ruin("transcript-is-a-fifo", inTurn, func() {
			_ = os.Remove(artifact("transcript.jsonl"))
			_ = unix.Mkfifo(artifact("transcript.jsonl"), 0o644)
		}),
		ruin("results-is-a-link", inTurn, func() {
			_ = os.Symlink(filepath.Join(os.Getenv("HOSTILE_OUTSIDE"), "victim"), filepath.Join(out(), "results.json"))
		}),
		ruin("results-is-a-fifo", inTurn, func() { _ = unix.Mkfifo(filepath.Join(out(), "results.json"), 0o644) }),
		ruin("results-is-a-directory", inTurn, func() { _ = os.Mkdir(filepath.Join(out(), "results.json"), 0o755) }),
		ruin("stderr-is-a-link", inTurn, func() {
			_ = os.Symlink(filepath.Join(os.Getenv("HOSTILE_OUTSIDE"), "victim"), artifact("stderr.txt"))
		}),
		ruin("stderr-is-a-fifo", inTurn, func() { _ = unix.Mkfifo(artifact("stderr.txt"), 0o644) }),
		ruin("diff-is-a-fifo", inTurn, func() { _ = unix.Mkfifo(artifact("workspace.diff"), 0o644) }),
		ruin("ruined-until-the-end", atStart, func() {
			start(&syscall.SysProcAttr{Setsid: true}, []string{}, "ruin", out())
		}),
		ruin("temp-removed", inTurn, func() { _ = os.RemoveAll(os.Getenv("HOSTILE_TMP")) }),
	}
}
