package process

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// TempDir is a temporary directory that Close removes. With a keeper, it is also removed if this process is killed,
// even by SIGKILL.
type TempDir struct {
	dir    string
	keeper *post
	once   sync.Once
	err    error
}

// NewTempDir creates a directory in parent; "" means the system's directory for temporary files. keeper is the
// command line of a keeper, as in Spec; nil means that the directory has no keeper. Before the keeper removes the
// directory, it kills the processes with ACP_TEST_RUN set to runID. If runID is "", it uses a new id that no process
// has.
func NewTempDir(keeper []string, parent, runID string) (_ *TempDir, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("making a directory for the run: %w", err)
		}
	}()
	if parent, err = filepath.Abs(cmp.Or(parent, os.TempDir())); err != nil {
		return nil, err
	}
	if keeper == nil {
		dir, err := os.MkdirTemp(parent, "acp-test-")
		return &TempDir{dir: dir}, err
	}
	// Inform the keeper before creating the directory, so that no directory exists that the keeper does not know.
	dir := filepath.Join(parent, "acp-test-"+NewRunID())
	k, err := guard(keeper, cmp.Or(runID, NewRunID()), dir)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		k.release(true)
		return nil, err
	}
	return &TempDir{dir: dir, keeper: k}, nil
}

// Dir returns the path of the directory.
func (s *TempDir) Dir() string { return s.dir }

// Close removes the directory.
func (s *TempDir) Close() error {
	s.once.Do(func() {
		removeDir(s.dir)
		if _, err := os.Stat(s.dir); err == nil {
			s.err = fmt.Errorf("removing %s: a file in it cannot be removed", s.dir)
		}
		if s.keeper != nil {
			s.keeper.release(true)
		}
	})
	return s.err
}
