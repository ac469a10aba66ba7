package main

import (
	"context"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// settled answers a prompt as soon as its session is at rest.
func (g *gofer) settled(request context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	type reply struct {
		res acp.PromptResponse
		err error
	}
	got, idle := make(chan reply, 1), make(chan struct{}, 1)
	go func() {
		res, err := g.prompt(request, p, idle)
		got <- reply{res, err}
	}()
	select {
	case r := <-got:
		return r.res, r.err
	case <-idle:
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
}

// accepted answers a prompt as soon as its turn runs.
func (g *gofer) accepted(request context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	type reply struct {
		res acp.PromptResponse
		err error
	}
	got := make(chan reply, 1)
	go func() {
		res, err := g.prompt(request, p, nil)
		got <- reply{res, err}
	}()
	select {
	case r := <-got:
		return r.res, r.err
	case <-time.After(100 * time.Millisecond): // it is not refused
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
}

// listen begins to wait for more, once the model has said something.
func (a *answer) listen() {
	idle := a.turn.idle
	if idle == nil || !a.turn.spoke {
		return
	}
	a.quiet = time.AfterFunc(3*time.Second, func() {
		select {
		case idle <- struct{}{}:
		default:
		}
	})
}

// hush ends the wait.
func (a *answer) hush() {
	if a.quiet != nil {
		a.quiet.Stop()
	}
}
