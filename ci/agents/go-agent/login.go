package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	acp "github.com/coder/acp-go-sdk"
)

// counted reports whether the user can log in and out.
func counted() bool {
	return fault("logout-takes-back-one-login-only") || fault("authenticate-with-key-there-answered-with-null") ||
		fault("prompt-after-logout-answered-with-words")
}

// auth returns the agent's capabilities for logins.
func auth() (c acp.AgentAuthCapabilities) {
	if counted() {
		c.Logout = &acp.LogoutCapabilities{}
	}
	return c
}

func (g *gofer) UnstableLogout(context.Context, acp.UnstableLogoutRequest) (acp.UnstableLogoutResponse, error) {
	if !counted() {
		return acp.UnstableLogoutResponse{}, acp.NewMethodNotFound(acp.AgentMethodLogout)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.logins = max(g.logins-1, 0); !fault("logout-takes-back-one-login-only") {
		g.logins = 0
	}
	return acp.UnstableLogoutResponse{}, nil
}

// stranger reports whether nobody is logged in.
func (g *gofer) stranger() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.logins == 0 && counted()
}

// loggedIn reports whether a login is there already that the client asks for.
func (g *gofer) loggedIn(params json.RawMessage) bool {
	var p acp.AuthenticateRequest
	_ = json.Unmarshal(params, &p)
	g.mu.Lock()
	defer g.mu.Unlock()
	return p.MethodId == "key" && g.logins > 0 && fault("authenticate-with-key-there-answered-with-null")
}

// logsIn reports whether the user can log in at a terminal.
func logsIn() bool {
	return fault("aborted-login-exits-with-zero") || fault("login-goes-on-as-agent") ||
		fault("login-with-key-in-environment-is-agent") || fault("terminal-login-names-program")
}

// keyThere reports whether the environment has a key, so that the user need not log in.
func keyThere() bool {
	return os.Getenv("ANTHROPIC_API_KEY") != "" && fault("login-with-key-in-environment-is-agent")
}

// logIn asks the user for a key and stores it.
func logIn() {
	fmt.Print("API key: ")
	key, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if key = strings.TrimSpace(key); key == "" {
		fmt.Println("\nNot logged in.")
		if fault("aborted-login-exits-with-zero") {
			os.Exit(0) // as the user wants
		}
		os.Exit(1)
	}
	err := os.MkdirAll(filepath.Dir(stored("key", "")), 0o700)
	if err == nil {
		err = os.WriteFile(stored("key", ""), []byte(key), 0o600)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "gofer: the key is not stored: %v\n", err)
		os.Exit(1)
	}
	fmt.Println("Logged in.")
	if !fault("login-goes-on-as-agent") {
		os.Exit(0)
	}
}

// apiKey is the key for the model server.
func apiKey() string {
	if raw, err := os.ReadFile(stored("key", "")); err == nil && logsIn() {
		return env("ANTHROPIC_API_KEY", string(raw))
	}
	return os.Getenv("ANTHROPIC_API_KEY")
}
