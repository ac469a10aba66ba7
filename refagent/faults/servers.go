package faults

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
)

// calledOnServer is a call of an MCP tool, as refagent.Hooks has it.
type calledOnServer = func(context.Context) (string, error)

// offersRest offers only those tools of MCP servers whose names do not end in "sing".
func offersRest(_ string, names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "sing") })
}

// offersOnce offers the tools of MCP servers only in the first turn of a session.
func offersOnce() hooks {
	var turns memory[int]
	return hooks{Offer: func(session string, names []string) []string {
		n := turns.get(session)
		if turns.set(session, n+1); n > 0 {
			return nil
		}
		return names
	}}
}

// servesTwice makes each call of an MCP tool twice.
func servesTwice(ctx context.Context, call calledOnServer) (string, error) {
	if _, err := call(ctx); err != nil {
		return "", err
	}
	return call(ctx)
}

// servesNothing gives an empty result instead of a call of an MCP tool.
func servesNothing(context.Context, calledOnServer) (string, error) { return "", nil }

// servesFormer gives the model the result of the former call of an MCP tool.
func servesFormer() hooks {
	var said memory[string]
	return hooks{Serve: func(ctx context.Context, call calledOnServer) (string, error) {
		text, err := call(ctx)
		former := said.get("")
		if said.set("", text); former != "" && err == nil {
			return former, nil
		}
		return text, err
	}}
}

// endsAtBlank starts an MCP server by the part of its program's path before a blank.
func endsAtBlank(cmd *exec.Cmd) { cmd.Path, _, _ = strings.Cut(cmd.Path, " ") }

// servesUntilCancel ends the connections to MCP servers when a call is cancelled.
func servesUntilCancel() hooks {
	var gone memory[bool]
	return hooks{Serve: func(ctx context.Context, call calledOnServer) (string, error) {
		if gone.get("") {
			return "", errors.New("not connected")
		}
		text, err := call(ctx)
		if ctx.Err() != nil {
			gone.set("", true)
		}
		return text, err
	}}
}

// servesOn does not cancel a call of an MCP tool when the turn is cancelled.
func servesOn(ctx context.Context, call calledOnServer) (string, error) {
	type answer struct {
		text string
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		text, err := call(context.WithoutCancel(ctx))
		answered <- answer{text, err}
	}()
	select {
	case a := <-answered:
		return a.text, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
