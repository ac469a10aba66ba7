package rules

import (
	"embed"
	"path"
	"strings"

	"golang.org/x/tools/txtar"
)

//go:embed examples/*.txtar
var exampleFiles embed.FS

// Example is a minimal transcript, in short notation, and what a rule has to
// say of it. The examples are shown to users and are the tests of the rules.
//
// A line is a frame of the editor (-->) or of the agent (<--), or an event:
//
//	--> ID METHOD [SESSION] PARAMS   a request; without ID a notification
//	<-- ID = RESULT                  a response
//	<-- ID ! CODE "MESSAGE"          an error
//	<-- SESSION KIND UPDATE          a session/update; text stands for a chunk
//	<--| TEXT                        a line as it is; <--\ with Go escapes, <--+ cut off
//	start                            initialize, with all capabilities of both sides
//	session NAME [RESULT]            session/new
//	model KIND SESSION DETAILS       something the fake model did
//	wait D, written, stdin-closed, exit, cut off
//	also RULE/POINT…                 what other rules find
type Example struct {
	Rule string
	// Class and Point are what is found; Point is "" if nothing is.
	Class Class
	Point string
	// Remark is what to note about it, or "".
	Remark string
	Text   string
}

// Examples returns the examples of one rule, in their order.
func Examples(rule string) []Example {
	data, err := exampleFiles.ReadFile(path.Join("examples", rule+".txtar"))
	if err != nil {
		return nil
	}
	var all []Example
	for _, file := range txtar.Parse(data).Files {
		x := Example{Rule: rule, Text: string(file.Data)}
		word, rest, _ := strings.Cut(file.Name, " ")
		if word == "pass" {
			x.Remark = rest
		} else {
			if err := x.Class.UnmarshalText([]byte(word)); err != nil {
				panic("rules: examples/" + rule + ".txtar: " + err.Error())
			}
			x.Point, x.Remark, _ = strings.Cut(rest, ": ")
		}
		all = append(all, x)
	}
	return all
}
