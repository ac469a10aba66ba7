//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What an injection looks like where it acts, by the name of the report.
var (
	command  = regexp.MustCompile(`(?m)^::(?:error|warning|notice) file=`)
	outcomes = regexp.MustCompile(`(?m)^(?:ok |not ok |Bail out!|\d+\.\.)`)
	spans    = regexp.MustCompile("(?s)(`{2,})[^`].*?[^`]`{2,}|`[^`\n]*`|```.*?```")
	alive    = regexp.MustCompile(`(^|[^\\])(?:\]\((?:javascript|http://192)|<(?:script|img|/details)|!\[i|@everyone)`)
	html     = regexp.MustCompile(`<script>alert|<img src=x|href="javascript`)
)

// inert is what must be so of each report, whatever the agent says.
var inert = map[string]func(text string) error{
	"report.txt": printable,
	"summary.md": func(text string) error {
		return errors.Join(printable(text), none(alive, spans.ReplaceAllString(text, "")))
	},
	"annotations.txt": func(text string) error {
		for l := range strings.Lines(text) {
			if !command.MatchString(l) {
				return errors.New("a line that is another command: " + l)
			}
		}
		return nil
	},
	"results.tap": func(text string) error {
		if all := outcomes.FindAllString(text, -1); len(all) != 2 {
			return errors.New("more results than one: " + strings.Join(all, ", "))
		}
		return printable(text)
	},
	"junit.xml": func(text string) error { return errors.Join(printable(text), wellFormed(text)) },
	"badge.svg": func(text string) error { return errors.Join(wellFormed(text), none(html, text)) },
	"report.html": func(text string) error {
		return none(html, text)
	},
}

func none(acts *regexp.Regexp, text string) error {
	if at := acts.FindStringIndex(text); at != nil {
		return errors.New(text[max(at[0]-40, 0):min(at[1]+40, len(text))])
	}
	return nil
}

func wellFormed(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		switch token, err := d.Token(); x := token.(type) {
		case nil:
			if err == io.EOF {
				return nil
			}
			return err
		case xml.StartElement:
			if x.Name.Local == "script" || x.Name.Local == "img" {
				return errors.New("an element " + x.Name.Local)
			}
		case xml.CharData:
			if err := controls(string(x)); err != nil {
				return err
			}
		}
	}
}

// Nothing that an agent says acts in a report: 14 attacks in each of eight texts of the
// protocol, in seven reports and on the terminal.
func TestInjections(t *testing.T) {
	l := newLab(t)
	tried := 0
	for _, m := range injections() {
		if m.at != atInitialize || !*whole && !slices.Contains(strings.Fields(quick), m.name) {
			continue
		}
		o := l.run(t, m)
		for name, check := range inert {
			text, err := os.ReadFile(filepath.Join(o.out, name))
			if err == nil {
				err = check(string(text))
			}
			if err != nil {
				t.Errorf("%s in %s: %v", m.name, name, err)
			}
			tried++
		}
		for name, text := range map[string]string{"stdout": o.stdout, "stderr": o.stderr} {
			if err := printable(text); err != nil {
				t.Errorf("%s in %s: %v", m.name, name, err)
			}
			tried++
		}
		l.end()
	}
	t.Logf("%d injections", tried)
}
