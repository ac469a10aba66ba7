package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rerun makes the command that runs just one scenario of this run again.
func rerun(c *cobra.Command, o *options) func(id string) string {
	words := []string{"acp-test", c.Name()}
	once := []string{"run", "tag", "jobs", "repeat", "until-fail", "fail-fast", "shard", "durations", "out", "report",
		"verbose", "quiet", "update", "golden-required", "list", "baseline-write", "against", "watch"}
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
	given, command := c.Flags().Args(), []string(nil)
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		given, command = given[:dash], append([]string{"--"}, given[dash:]...)
	}
	return func(id string) string {
		all := append(slices.Clone(words), "--run", "^"+regexp.QuoteMeta(id)+"$")
		return quoted(spoken(append(append(all, given...), command...)))
	}
}

var harmlessWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is a command line for a POSIX shell.
func quoted(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if harmlessWord.MatchString(w) {
			b.WriteString(w)
		} else {
			b.WriteString("'" + strings.ReplaceAll(w, "'", `'\''`) + "'")
		}
	}
	return b.String()
}
