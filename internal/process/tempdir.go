package process

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// TempDir is a temporary directory that does not outlive this process. Where
// there is a keeper, that holds also if the process is killed with SIGKILL.
type TempDir struct {
	dir    string
	keeper *post
	once   sync.Once
	err    error
}

// NewTempDir makes a directory in parent ("" is the system's), watched by a
// keeper of its own; keeper is as in Spec, and nil means none. What runs
// with ACP_TEST_RUN set to runID is killed before the directory is removed;
// "" makes one up that nothing has.
func NewTempDir(keeper []string, parent, runID string) (*TempDir, error) {
	s, err := newTempDir(keeper, parent, runID)
	if err != nil {
		return nil, fmt.Errorf("making a directory for the run: %w", err)
	}
	return s, nil
}

func newTempDir(keeper []string, parent, runID string) (*TempDir, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	if runID == "" {
		runID = NewRunID()
	}
	if keeper == nil {
		dir, err := os.MkdirTemp(parent, "acp-test-")
		return &TempDir{dir: dir}, err
	}
	// The keeper first: a directory that exists is a directory it knows of.
	dir := filepath.Join(parent, "acp-test-"+NewRunID())
	k, err := guard(keeper, runID, dir)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		k.release(true)
		return nil, err
	}
	return &TempDir{dir: dir, keeper: k}, nil
}

// Dir is the directory.
func (s *TempDir) Dir() string { return s.dir }

// Close removes the directory.
func (s *TempDir) Close() error {
	s.once.Do(func() {
		removeDir(s.dir)
		if _, err := os.Stat(s.dir); err == nil {
			s.err = fmt.Errorf("removing %s: something in it cannot be removed", s.dir)
		}
		if s.keeper != nil {
			s.keeper.release(true)
		}
	})
	return s.err
}
