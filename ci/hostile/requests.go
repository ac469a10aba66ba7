//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// requests returns agents that ask the editor for files outside the workspace and for special files, which it must
// refuse.
func requests() []mode {
	var all []mode
	for name, path := range map[string]string{
		"passwd": "/etc/passwd", "dots": "$CWD/../../../../../../etc/passwd", "environ": "/proc/self/environ",
		"fd": "/dev/fd/0", "root-link": "/proc/self/root/etc/passwd", "relative": "etc/passwd", "nul": "$CWD/a\x00b",
		"empty": "", "long": "/" + strings.Repeat("a/", 50_000), "out": "$OUT/results.json",
		"cwd-link":     "/proc/self/cwd/go.mod",
		"double-slash": "//etc/passwd", "fifo": "$CWD/fifo", "zero": "$CWD/zero", "sparse": "$CWD/sparse",
	} {
		for _, method := range []string{"fs/read_text_file", "fs/write_text_file"} {
			if path == "$CWD/sparse" && method == "fs/write_text_file" {
				continue // the agent owns this file
			}
			all = append(all, mode{
				name: "fs-" + strings.TrimSuffix(strings.TrimPrefix(method, "fs/"), "_text_file") + "-" + name, at: inTurn,
				do: func(a *agent) {
					_ = unix.Mkfifo(filepath.Join(a.cwd, "fifo"), 0o644)
					_ = os.Symlink("/dev/zero", filepath.Join(a.cwd, "zero"))
					if f, err := os.Create(filepath.Join(a.cwd, "sparse")); err == nil {
						_ = f.Truncate(1 << 40)
						f.Close()
					}
					p := strings.NewReplacer("$CWD", a.cwd, "$OUT", out()).Replace(path)
					params := `{"sessionId":"s","path":` + quote(p)
					if method == "fs/write_text_file" {
						params += `,"content":"owned"`
					}
					answer := a.ask(9, method, params+"}")
					if strings.Contains(answer, "root:") || strings.Contains(answer, "HOSTILE") ||
						!strings.Contains(answer, `"error"`) {
						say(`{"jsonrpc":"2.0","method":"_escaped","params":{"by":%s}}`, quote(p))
						os.Exit(66)
					}
				}})
		}
	}
	slices.SortFunc(all, func(a, b mode) int { return strings.Compare(a.name, b.name) })
	return all
}

// models returns agents that abuse the model server and the proxy.
func models() []mode {
	base := func() string { return os.Getenv("ANTHROPIC_BASE_URL") }
	dial := func() net.Conn {
		u, _ := url.Parse(base())
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return c
	}
	var held []net.Conn
	m := func(name string, do func(a *agent)) mode { return mode{name: "model-" + name, at: inTurn, do: do} }
	refused := func(headers ...string) func(a *agent) {
		return func(a *agent) {
			answer, err := post(strings.NewReader(question), headers...)
			if err != nil {
				os.Exit(67)
			}
			if answer.StatusCode == 200 {
				os.Exit(66)
			}
		}
	}
	return []mode{
		m("half-headers", func(*agent) {
			c := dial()
			held = append(held, c)
			fmt.Fprint(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n")
		}),
		m("connections-3000", func(*agent) {
			for range 3000 {
				u, _ := url.Parse(base())
				c, err := net.Dial("tcp", u.Host)
				if err != nil {
					break
				}
				held = append(held, c)
			}
		}),
		m("endless-body", func(*agent) {
			c := dial()
			go io.Copy(io.Discard, c)
			fmt.Fprint(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
			for range 2000 {
				if _, err := fmt.Fprintf(c, "10000\r\n%s\r\n", strings.Repeat("x", 1<<16)); err != nil {
					break
				}
			}
		}),
		m("endless-headers", func(*agent) {
			c := dial()
			fmt.Fprint(c, "POST / HTTP/1.1\r\n")
			for range 1_000_000 {
				if _, err := fmt.Fprint(c, "X: y\r\n"); err != nil {
					break
				}
			}
		}),
		m("garbage", func(*agent) {
			c := dial()
			fmt.Fprint(c, strings.Repeat("\x00\xff garbage\n", 1000))
			_, _ = io.Copy(io.Discard, c)
		}),
		m("zip-bomb", func(*agent) {
			if _, err := post(bytes.NewReader(bomb()), "Content-Encoding", "gzip"); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}),
		m("deep-body", func(*agent) { _, _ = post(strings.NewReader(strings.Repeat("[", 1<<20))) }),
		m("requests-5000", func(*agent) {
			var wait sync.WaitGroup
			for range 8 {
				wait.Go(func() {
					for range 625 {
						r, err := http.Post(base()+"/v1/chat/completions", "application/json", strings.NewReader("{}"))
						if err == nil {
							_, _ = io.Copy(io.Discard, r.Body)
							r.Body.Close()
						}
					}
				})
			}
			wait.Wait()
		}),
		m("foreign-host", refused("Host", "attacker.example", "Content-Type", "application/json")),
		m("cross-site", refused("Origin", "http://attacker.example", "Sec-Fetch-Site", "cross-site",
			"Content-Type", "text/plain")),
		m("egress-endless", func(*agent) {
			proxy, _ := url.Parse(os.Getenv("HTTP_PROXY"))
			c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), MaxIdleConnsPerHost: 4}}
			for n := 0; ; n++ { // until the run ends this process
				if r, err := c.Get(fmt.Sprintf("http://h%d.example/", n)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
			}
		}),
	}
}

// isolated returns agents whose attacks must fail under --isolate.
func isolated() []mode {
	m := func(name string, do func(a *agent)) mode {
		return mode{name: "isolated-" + name, at: inTurn, flags: []string{"--isolate"}, do: do}
	}
	must := func(err error) {
		if err == nil {
			os.Exit(66)
		}
	}
	return []mode{
		m("evidence", func(*agent) {
			_, err := os.Stat(out())
			must(err)
			_ = os.RemoveAll(out())
		}),
		m("files", func(*agent) {
			victim := filepath.Join(os.Getenv("HOSTILE_OUTSIDE"), "victim")
			_, err := os.ReadFile(victim)
			must(err)
			must(os.WriteFile(victim, []byte("owned"), 0o644))
			must(os.WriteFile("/usr/owned", nil, 0o644))
			must(os.WriteFile("/proc/sys/kernel/core_pattern", []byte("|/owned"), 0o644))
			_, err = os.ReadFile("/etc/shadow")
			must(err)
			must(unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""))
			must(unix.Unmount("/tmp", 0))
		}),
		m("processes", func(*agent) {
			for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
				_ = syscall.Kill(-1, s)
				_ = syscall.Kill(os.Getppid(), s)
			}
		}),
		m("chains-20", leave(20, daemon(), []string{}, "chain", "1")),
		m("memory", func(*agent) { // fills the file systems that are in memory
			for _, dir := range []string{"/tmp", "/dev/shm"} {
				f, err := os.Create(filepath.Join(dir, "x"))
				if err == nil {
					for err == nil {
						_, err = f.Write(make([]byte, 1<<20))
					}
					f.Close()
				}
			}
		}),
	}
}
