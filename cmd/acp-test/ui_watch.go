package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/acp-test/acp-test/inspector"
)

// rounds runs scenarios, and again what a saved file touches, each time into a folder of
// its own, which the page shows beside the last. It returns when the context ends.
func (h *host) rounds(ctx context.Context, o *viewing, do *doer) error {
	all := o.subject
	all.paths, all.out, all.golden = o.paths, do.temp, "golden"
	var dirs []string
	whole := -1 // the last round of everything
	return h.again(ctx, &all, func(files map[string]bool) {
		n := len(dirs) + 1
		dirs = append(dirs, filepath.Join(do.temp, fmt.Sprint("round-", n), "acp-test-out"))
		paths := o.paths
		if files != nil {
			paths = slices.Sorted(maps.Keys(files))
		}
		name := fmt.Sprint("round ", n)
		do.server.Add(inspector.Source{Name: name, Dir: dirs[n-1], Round: n})
		words := append(append([]string{"run", "-q", "--no-smoke", "--out", dirs[n-1]}, paths...), do.agent...)
		if _, err := do.run(ctx, words); err != nil && ctx.Err() == nil {
			do.server.Tell(name, err.Error())
		}
		if files != nil {
			return
		}
		// Nothing of before the last but one of everything is newest or beside that any more.
		for k := range max(whole, 0) {
			do.server.Drop(fmt.Sprint("round ", k+1))
			os.RemoveAll(filepath.Dir(dirs[k])) // the rest of temp is removed at the end
		}
		whole = n - 1
	})
}
