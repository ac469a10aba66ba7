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
	return fault("option-of-one-session-set-for-all") || own()
}

// own reports whether each session has a model of its own.
func own() bool {
	return fault("fallback-model-not-told") || moded() || fault("option-set-by-its-category") ||
		fault("model-set-back-by-reset-not-told") || fault("chosen-model-listed-twice") ||
		fault("window-of-chosen-model-told-as-zero")
}

// modelBack lets the session begin anew with the model that new sessions have.
func (t *turn) modelBack() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if fault("model-set-back-by-reset-not-told") {
		t.s.model = models()[0]
	}
}

// recent lists the models that the user has chosen before, which come first.
func (s *session) recent() []string {
	if s.chosen == "" || !fault("chosen-model-listed-twice") {
		return nil
	}
	return []string{s.chosen}
}

// options offers the choice of the model.
func (g *gofer) options(s *session) []acp.SessionConfigOption {
	current := g.model
	if !optional() {
		return nil
	}
	if own() {
		current = s.model
	}
	var list acp.SessionConfigSelectOptionsUngrouped
	for _, m := range append(s.recent(), models()...) {
		list = append(list, acp.SessionConfigSelectOption{Name: m, Value: acp.SessionConfigValueId(m)})
	}
	o := acp.NewSessionConfigOptionSelect(acp.SessionConfigValueId(current),
		acp.SessionConfigSelectOptions{Ungrouped: &list})
	o.Select.Id, o.Select.Name = "model", "Model"
	if fault("option-set-by-its-category") {
		o.Select.Category = acp.Ptr(acp.SessionConfigOptionCategoryModel)
		return []acp.SessionConfigOption{o, s.effortOption()}
	}
	return append(s.modeOption(), o)
}

// effortOption offers the choice of how much the model thinks.
func (s *session) effortOption() acp.SessionConfigOption {
	if s.effort == "" {
		s.effort = "medium"
	}
	var list acp.SessionConfigSelectOptionsUngrouped
	for _, e := range []string{"low", "medium", "high"} {
		list = append(list, acp.SessionConfigSelectOption{Name: e, Value: acp.SessionConfigValueId(e)})
	}
	o := acp.NewSessionConfigOptionSelect(acp.SessionConfigValueId(s.effort),
		acp.SessionConfigSelectOptions{Ungrouped: &list})
	o.Select.Id, o.Select.Name = "effort", "Effort"
	o.Select.Category = acp.Ptr(acp.SessionConfigOptionCategoryThoughtLevel)
	return o
}

// setByCategory sets the option that has the category. The caller holds the lock.
func (g *gofer) setByCategory(
	v *acp.SetSessionConfigOptionValueId,
) (res acp.SetSessionConfigOptionResponse, err error) {
	s := g.sessions[string(v.SessionId)]
	if s == nil {
		return res, notFound(v.SessionId)
	}
	for _, o := range g.options(s) {
		has := func(i acp.SessionConfigSelectOption) bool { return i.Value == v.Value }
		if string(*o.Select.Category) != string(v.ConfigId) || !slices.ContainsFunc(*o.Select.Options.Ungrouped, has) {
			continue
		}
		if o.Select.Id == "model" {
			s.model = string(v.Value)
		} else {
			s.effort = string(v.Value)
		}
		return acp.SetSessionConfigOptionResponse{ConfigOptions: g.options(s)}, nil
	}
	return res, acp.NewInvalidParams("there is no such option, or it has no such value")
}

func (g *gofer) SetSessionConfigOption(
	_ context.Context, p acp.SetSessionConfigOptionRequest,
) (acp.SetSessionConfigOptionResponse, error) {
	if p.ValueId != nil && p.ValueId.ConfigId == "mode" && moded() {
		return g.setModeOption(string(p.ValueId.SessionId), string(p.ValueId.Value))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	v, none := p.ValueId, acp.SetSessionConfigOptionResponse{}
	if v != nil && fault("option-set-by-its-category") {
		return g.setByCategory(v)
	}
	switch {
	case !optional():
		return none, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
	case v == nil || v.ConfigId != "model" || !slices.Contains(models(), string(v.Value)):
		return none, acp.NewInvalidParams("there is no such option, or it has no such value")
	case g.sessions[string(v.SessionId)] == nil:
		return none, notFound(v.SessionId)
	}
	s := g.sessions[string(v.SessionId)]
	s.chosen = string(v.Value)
	if s.model = string(v.Value); !own() {
		g.model = s.model
	}
	return acp.SetSessionConfigOptionResponse{ConfigOptions: g.options(s)}, nil
}

func (g *gofer) SetSessionMode(_ context.Context, p acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	if moded() {
		return acp.SetSessionModeResponse{}, g.enter(p.SessionId, string(p.ModeId))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[string(p.SessionId)] != nil && fault("mode-set-though-there-are-none") {
		return acp.SetSessionModeResponse{}, nil
	}
	return acp.SetSessionModeResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetMode)
}
