package guide_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/acp-test/acp-test/refagent"
)

// The agent of the guide is this test binary, by the name my-agent.
func init() {
	if runtime.GOOS == "windows" {
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "my-agent" {
		err := refagent.Run(context.Background(),
			refagent.Options{In: os.Stdin, Out: os.Stdout, Log: os.Stderr, Getenv: os.Getenv})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			syscall.Exit(1)
		}
		syscall.Exit(0)
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		return // a keeper
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	bin := filepath.Join(filepath.Dir(self), "bin") // go test removes it
	if err := os.MkdirAll(bin, 0o700); err != nil {
		panic(err)
	}
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' my-agent\n", self)
	if err := os.WriteFile(filepath.Join(bin, "my-agent"), []byte(text), 0o700); err != nil {
		panic(err)
	}
	os.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

// The pages show what is tested here: each block of theirs stands in guide_test.go.
func TestPages(t *testing.T) {
	code, err := os.ReadFile("guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]int{"go.md": 5, "cookbook.md": 1} {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(page), "```go\n")[1:]
		for _, b := range blocks {
			b, _, _ = strings.Cut(b, "```")
			if !strings.Contains(string(code), b) {
				t.Errorf("a block of docs/%s is not in guide_test.go:\n%s", name, b)
			}
		}
		if len(blocks) < least {
			t.Errorf("docs/%s has only %d blocks", name, len(blocks))
		}
	}
}
