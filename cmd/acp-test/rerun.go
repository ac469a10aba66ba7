package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios"
)

// rerun returns a function that returns the command line to rerun one scenario of this run.
func rerun(c *cobra.Command) func(id string) string {
	words := append([]string{"acp-test", c.Name()}, again(c)...)
	given, agent := atDash(c, c.Flags().Args())
	if agent != nil {
		given = slices.Concat(given, []string{"--"}, agent)
	}
	return func(id string) string {
		return quoted(spoken(slices.Concat(words, []string{"--run", "^" + regexp.QuoteMeta(id) + "$"}, given)))
	}
}

// rerunFile returns a command line that runs a scenario file with the settings of a sweep.
func rerunFile(c *cobra.Command, engine *scenarios.Engine, file string) string {
	words := append([]string{"acp-test", "run"}, again(c, "points", "actions", "max", "sessions", "again",
		"confirm", "repro", "reuse", "suite", "baseline", "strict")...)
	if engine.Linger != nil && !c.Flags().Changed("linger") {
		words = append(words, "--linger", engine.Linger.String())
	}
	words = append(words, file)
	if _, agent := atDash(c, c.Flags().Args()); agent != nil {
		words = append(append(words, "--"), agent...)
	}
	return quoted(spoken(words))
}

// again returns the flags of this command line that also apply to a rerun. It omits those in unwanted, and flags that
// make sense only once, such as --report.
func again(c *cobra.Command, unwanted ...string) (words []string) {
	once := append(unwanted, "run", "tag", "jobs", "repeat", "until-fail", "fail-fast", "shard", "durations",
		"out", "report", "verbose", "quiet", "update", "golden-required", "list", "baseline-write", "against", "watch",
		"failed", "since", "budget",
		"smoke", "no-smoke")
	c.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(once, f.Name) {
			return
		}
		switch v := f.Value.(type) {
		case pflag.SliceValue:
			for _, one := range v.GetSlice() {
				words = append(words, "--"+f.Name, one)
			}
		default:
			if f.Value.Type() == "bool" {
				words = append(words, "--"+f.Name)
			} else {
				words = append(words, "--"+f.Name, f.Value.String())
			}
		}
	})
	return words
}

var harmlessWord = lazy.Regexp(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted returns a command line with the words quoted for a POSIX shell.
func quoted(words []string) string {
	return strings.Join(lists.Map(words, func(w string) string {
		if harmlessWord().MatchString(w) {
			return w
		}
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}), " ")
}

// atDash splits the words of a command line at --: ours come before it, agent after it. Without --, agent is nil.
func atDash(c *cobra.Command, args []string) (ours, agent []string) {
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		return args[:dash], args[dash:]
	}
	return args, nil
}
