package main

import (
	"context"
	"slices"

	acp "github.com/coder/acp-go-sdk"
)

// models lists what the user can choose from.
func models() []string { return []string{env("GOFER_MODEL", "claude-sonnet-4-5"), "claude-opus-4-5"} }

// optional reports whether the user can choose the model.
func optional() bool {
	return fault("option-of-one-session-set-for-all") || fault("fallback-model-not-told")
}

// options offers the choice of the model.
func (g *gofer) options(s *session) []acp.SessionConfigOption {
	current := g.model
	if !optional() {
		return nil
	}
	if fault("fallback-model-not-told") {
		current = s.model
	}
	var list acp.SessionConfigSelectOptionsUngrouped
	for _, m := range models() {
		list = append(list, acp.SessionConfigSelectOption{Name: m, Value: acp.SessionConfigValueId(m)})
	}
	o := acp.NewSessionConfigOptionSelect(acp.SessionConfigValueId(current),
		acp.SessionConfigSelectOptions{Ungrouped: &list})
	o.Select.Id, o.Select.Name = "model", "Model"
	return []acp.SessionConfigOption{o}
}

func (g *gofer) SetSessionConfigOption(
	_ context.Context, p acp.SetSessionConfigOptionRequest,
) (acp.SetSessionConfigOptionResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v, none := p.ValueId, acp.SetSessionConfigOptionResponse{}
	switch {
	case !optional():
		return none, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
	case v == nil || v.ConfigId != "model" || !slices.Contains(models(), string(v.Value)):
		return none, acp.NewInvalidParams("there is no such option, or it has no such value")
	case g.sessions[string(v.SessionId)] == nil:
		return none, notFound(v.SessionId)
	}
	s := g.sessions[string(v.SessionId)]
	if s.model = string(v.Value); !fault("fallback-model-not-told") {
		g.model = s.model
	}
	return acp.SetSessionConfigOptionResponse{ConfigOptions: g.options(s)}, nil
}

func (g *gofer) SetSessionMode(_ context.Context, p acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[string(p.SessionId)] != nil && fault("mode-set-though-there-are-none") {
		return acp.SetSessionModeResponse{}, nil
	}
	return acp.SetSessionModeResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetMode)
}
