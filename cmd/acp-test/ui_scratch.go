package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/internal/process"
	"github.com/acp-test/acp-test/protocol/acp/scratch"
	"github.com/acp-test/acp-test/transcript"
)

// scratch starts the agent that the page then plays with, and shows its transcript; stop
// ends it.
func (h *host) scratch(ctx context.Context, o *viewing, server *inspector.Server,
	temp string) (stop func(), err error) {
	of := protocols()[0]
	p, err := o.subject.subject(h, of)
	if err != nil {
		return nil, err
	}
	if o.subject.fault != "" {
		if err := differs(of.Name, o.subject.fault, nil); err != nil {
			return nil, err
		}
		p = p.WithCommand(append(append([]string{}, p.Command...), "--fault", o.subject.fault))
	}
	keeper := []string{h.self, "keeper"}
	place, err := process.NewTempDir(keeper, "", "")
	if err != nil {
		return nil, err
	}
	shown := filepath.Join(temp, "scratch")
	if err := os.Mkdir(shown, 0o700); err != nil {
		return nil, err
	}
	log, err := transcript.New(transcript.Header{Tool: tool(), Agent: p.Name, Scenario: "scratch", Protocol: of.Version},
		transcript.Options{Classifier: of.Classifier, Path: filepath.Join(shown, "transcript.jsonl"),
			Through: true /* the page reads it at once */, Redact: h.redactor(of)})
	if err != nil {
		return nil, err
	}
	s, err := scratch.Start(ctx, scratch.Options{Profile: p, Box: h.sandbox(), Root: place.Dir(), Log: log, Keeper: keeper,
		Step: o.step})
	stop = func() {
		if s != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			s.Close(ctx)
		}
		log.Close()   // it is removed
		place.Close() // what stands in the way is removed by its keeper
	}
	if err != nil {
		stop()
		return nil, err
	}
	server.Add(inspector.Source{Name: "scratch", Dir: shown, File: "transcript.jsonl"})
	server.Actions["scratch"] = func(_ context.Context, body json.RawMessage) (any, error) {
		var a scratch.Act
		if err := json.Unmarshal(body, &a); err != nil {
			return nil, err
		}
		if a.Do != "" {
			if err := s.Do(ctx, a); err != nil {
				return nil, err
			}
		}
		return s.State(), nil
	}
	return stop, nil
}
