// Package lexicon reads the commands and patterns that a protocol adds to the scenario language from tables. A table
// of commands has a block for each command, with blank lines between:
//
//	NAME ARGUMENTS
//	  GROUP FLAG…
//	  the summary
//	  the lines of the detail, if there are any
//
// The flags are captures, negatable, effect, of-tool, cuts and alone: fields of scenarios.Command.
// A table of patterns has a line for each:
//
//	NAME OPTION…: HELP
//
// The options are arg=ARG, also=ALIAS, inner, opens, effect and answered: fields of language.Kind.
package lexicon

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/scenarios/language"
	"github.com/acp-test/acp-test/transcript"
)

// Compilers has, by command name, the function that reads the command's arguments.
type Compilers map[string]func(*scenarios.Line) scenarios.Step

// Commands returns the commands of a table, in the order of the table. It panics if a command has no function, or if
// the table is wrong, because tables are part of the program.
func Commands(table string, compile Compilers) []*scenarios.Command {
	return lists.Map(strings.Split(strings.TrimSpace(table), "\n\n"), func(block string) *scenarios.Command {
		lines := strings.Split(block, "\n  ")
		c := &scenarios.Command{Summary: lines[2], Detail: strings.Join(lines[3:], "\n")}
		c.Name, c.Args, _ = strings.Cut(lines[0], " ")
		words := strings.Fields(lines[1])
		c.Group = words[0]
		flags := map[string]*bool{"captures": &c.Captures, "negatable": &c.Negatable, "effect": &c.Effect,
			"of-tool": &c.OfTool, "cuts": &c.Cuts, "alone": &c.Alone}
		for _, flag := range words[1:] {
			*flags[flag] = true
		}
		if c.Compile = compile[c.Name]; c.Compile == nil {
			panic(fmt.Sprintf("the command %s has no function", c.Name))
		}
		return c
	})
}

// Match reports whether a pattern matches an entry.
type Match = func(x language.Bound, e transcript.Entry, own bool) bool

// Kinds returns the patterns of a table, in the order of the table. For a pattern that match lacks, other is called
// with the names of the pattern.
func Kinds(table string, match map[string]Match, other func(names ...string) Match) []language.Kind {
	return lists.Map(strings.Split(strings.TrimSpace(table), "\n"), func(line string) language.Kind {
		head, help, _ := strings.Cut(line, ": ")
		words := strings.Fields(head)
		k := language.Kind{Name: words[0], Help: help}
		flags := map[string]*bool{"inner": &k.Inner, "opens": &k.Opens, "effect": &k.Effect, "answered": &k.Answered}
		for _, word := range words[1:] {
			switch key, value, _ := strings.Cut(word, "="); key {
			case "arg":
				k.Arg = value
			case "also":
				k.Aliases = append(k.Aliases, value)
			default:
				*flags[word] = true
			}
		}
		if k.Match = match[k.Name]; k.Match == nil {
			k.Match = other(append(k.Aliases, k.Name)...)
		}
		return k
	})
}
