package main

import (
	"context"

	acp "github.com/coder/acp-go-sdk"
)

// counted reports whether the user can log in and out.
func counted() bool { return fault("logout-takes-back-one-login-only") }

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
	g.logins = max(g.logins-1, 0)
	return acp.UnstableLogoutResponse{}, nil
}

// stranger reports whether nobody is logged in.
func (g *gofer) stranger() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.logins == 0 && counted()
}
