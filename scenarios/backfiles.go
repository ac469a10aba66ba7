package scenarios

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/scenarios/script"
)

func compileCmp(l *line) (func(context.Context, *branch) error, error) {
	file, m := l.need(0, "a file of the workspace")
	if m != nil {
		return nil, m
	}
	want, m := l.one(1, "a file of the archive")
	if m != nil {
		return nil, m
	}
	if m := l.atMost(2); m != nil {
		return nil, m
	}
	data, ok := l.p.scenario.archived(want)
	if !ok {
		return nil, l.mistake(l.words[1].Column, "add it below as -- "+want+" --", "the archive holds no file %q", want)
	}
	return func(ctx context.Context, b *branch) error {
		name, err := b.expand(file)
		if err != nil {
			return l.runtime(err)
		}
		b.settleFiles(ctx)
		expect, err := script.ExpandText(want, string(data), b.run.fixed)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(b.run.inWork(name))
		if err != nil {
			what := err.Error()
			if errors.Is(err, fs.ErrNotExist) {
				what = name + " does not exist"
			}
			return b.back(l, true, name+" like "+want, what)
		}
		if !bytes.Equal(got, []byte(expect)) {
			err := b.back(l, true, name+" like "+want, "another content")
			err.(*miss).failure.Diff = golden.Diff(expect, string(got))
			return err
		}
		return nil
	}, nil
}

// settleFiles waits until what the agent asked the editor to write is written: an
// agent may end its turn without waiting for the answer.
func (b *branch) settleFiles(ctx context.Context) {
	editor := b.run.talking()
	if editor == nil {
		return
	}
	wait, cancel := b.run.stepTimeout(ctx, 0)
	defer cancel()
	editor.Settle(wait)
}

// archived is a file of the archive by its name there.
func (s *Scenario) archived(name string) ([]byte, bool) {
	if rest, ok := strings.CutPrefix(name, "want/"); ok {
		data, ok := s.want[rest]
		return data, ok
	}
	data, ok := s.files[name]
	return data, ok
}

func compileExists(l *line) (func(context.Context, *branch) error, error) {
	if _, m := l.need(0, "a file"); m != nil {
		return nil, m
	}
	return func(ctx context.Context, b *branch) error {
		b.settleFiles(ctx)
		for _, w := range l.words {
			name, err := b.expand(w)
			if err != nil {
				return l.runtime(err)
			}
			_, err = os.Lstat(b.run.inWork(name))
			switch {
			case err == nil && l.Negated:
				return b.back(l, true, "no file "+name, "it exists")
			case err != nil && !l.Negated:
				return b.back(l, true, "a file "+name, "it does not exist")
			}
		}
		return nil
	}, nil
}
