package replay

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
)

// scene is one run of a handler.
type scene struct {
	*scripted
	ctx       context.Context
	request   transcript.Entry // what is handled; zero for connect and eof
	session   string
	cancelled <-chan struct{}
	sink      sink
	index     int // $I
	answered  bool
}

func (s *scene) play(h *scenarios.AgentHandler) {
	err := s.acts(h.Acts)
	var end exited
	switch {
	case errors.As(err, &end), s.ctx.Err() != nil:
		return
	case err != nil:
		s.c.Log.Event(0, transcript.Note, transcript.Remark, s.session, map[string]any{"code": "script", "text": err.Error()})
	}
	// An open request is left open on purpose only where the handler waits.
	if !s.answered && s.request.Kind == transcript.Request && err == nil {
		if s.request.Method == "session/prompt" && hasAct(h.Acts, "await") {
			return
		}
		s.sink.send(s.plain(s.request))
	}
}

func hasAct(acts []scenarios.AgentAct, name string) bool {
	for _, a := range acts {
		if a.Name == name || hasAct(a.Body, name) {
			return true
		}
	}
	return false
}

// exited ends all handlers: the script has ended the process.
type exited struct{}

func (exited) Error() string { return "the script has ended" }

func (s *scene) acts(acts []scenarios.AgentAct) error {
	for i := range acts {
		if err := s.act(&acts[i]); err != nil {
			var end exited
			if errors.As(err, &end) {
				return err
			}
			return fmt.Errorf("line %d, %s: %w", acts[i].Line, acts[i].Name, err)
		}
		if s.ctx.Err() != nil {
			return exited{}
		}
	}
	return nil
}

// words are the arguments of an act with the variables replaced.
func (s *scene) words(a *scenarios.AgentAct) (words []string, options map[string]string, err error) {
	for _, w := range a.Words {
		text, err := s.expand(w)
		if err != nil {
			return nil, nil, err
		}
		words = append(words, text)
	}
	options = map[string]string{}
	for k, w := range a.Options {
		if options[k], err = s.expand(w); err != nil {
			return nil, nil, err
		}
	}
	return words, options, nil
}

// inText is a variable within quotes, where JSON stands.
var inText = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Za-z0-9_]+)*)`)

// expand replaces the variables of a word, those within quotes too; what is no
// variable there stays as it is.
func (s *scene) expand(w scenarios.AgentWord) (string, error) {
	text, err := w.Expand(s.variable)
	if err != nil {
		return "", err
	}
	return inText.ReplaceAllStringFunc(text, func(m string) string {
		parts := inText.FindStringSubmatch(m)
		if slices.Contains([]string{"SESSION", "WORK", "I", "ID"}, parts[1]) {
			value, _ := s.variable(parts[1])
			return value + parts[2]
		}
		if value, err := s.variable(m[1:]); err == nil {
			return value
		}
		return m
	}), nil
}

func (s *scene) variable(name string) (string, error) {
	switch name {
	case "SESSION":
		return s.session, nil
	case "WORK":
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.work[s.session], nil
	case "I":
		return strconv.Itoa(s.index), nil
	case "ID":
		return string(s.request.ID), nil
	}
	head, path, _ := strings.Cut(name, ".")
	s.mu.Lock()
	seq, ok := s.scripted.names[head]
	s.mu.Unlock()
	if !ok {
		return "", fmt.Errorf("unknown variable $%s", name)
	}
	e, ok := s.c.answer(s.ctx, seq)
	if !ok {
		return "", exited{}
	}
	v := e.JSON().Get("result").Path(path)
	return v.Text(), nil
}
