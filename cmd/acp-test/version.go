package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/protocol/acp/schema"
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
	var protocols bool
	c := &cobra.Command{
		Use:   "version",
		Short: "the version of this program and how it was built",
		Args:  atMost(0),
		RunE: func(*cobra.Command, []string) error {
			if protocols {
				writeProtocols(h.out, schema.LatestNews())
				return nil
			}
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
	c.Flags().BoolVar(&protocols, "protocols", false, "the state of the specification that each protocol is judged by")
	return c
}

// writeProtocols prints the judged state of each protocol, and what is new in it.
func writeProtocols(w io.Writer, news *schema.News) {
	for _, p := range news.Protocols {
		fmt.Fprintf(w, "%s  schema %s\n", p.Protocol, p.Schema)
		for _, f := range news.Features {
			if slices.Contains(f.Protocols, p.Protocol) {
				fmt.Fprintf(w, "  %-10s  %-9s  %s\n", f.Date, f.State, f.Name)
			}
		}
	}
	fmt.Fprintf(w, "facts read on %s; tables compared with %s\n", news.Read, news.Pinned)
}
