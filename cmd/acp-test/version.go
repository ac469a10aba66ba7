package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// tool is the name and version of this program, as headers and reports say it.
func tool() string { return "acp-test " + version() }

// released is the version that ci/release builds.
var released string

func version() string {
	if released != "" {
		return released
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func versionCommand(h *host) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "the version of this program and how it was built",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(h.out, "%s %s %s/%s\n", tool(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					switch s.Key {
					case "vcs.revision", "vcs.time", "vcs.modified":
						fmt.Fprintf(h.out, "%s %s\n", s.Key, s.Value)
					}
				}
			}
			return nil
		},
	}
}
