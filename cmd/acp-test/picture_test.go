//go:build unix

package main_test

import (
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// docs/run.svg is the picture on the first page: the scenarios that init writes, with an
// agent that ignores a cancel. ci/pages writes it, by the flag -update.
var _ = Describe("the picture of the first page", func() {
	It("is what a run prints", func() {
		p := newPlace()
		for _, name := range []string{"hello", "cancel"} {
			text, err := os.ReadFile("templates/" + name + ".txtar")
			Expect(err).NotTo(HaveOccurred())
			p.write("acp/"+name+".txtar", string(text))
		}
		p.write("my-agent", "#!/bin/sh\nexec "+program+" refagent --fault cancel-end-turn\n")
		got := p.run("run", "acp", "-j", "1", "--", "./my-agent")
		Expect(got.code).To(Equal(1))
		drawn := picture("acp-test run acp -- ./my-agent", strings.ReplaceAll(got.out, p.dir+"/", ""))
		const file = "../../docs/run.svg"
		if update := flag.Lookup("update"); update != nil && update.Value.String() == "true" {
			Expect(os.WriteFile(file, []byte(drawn), 0o644)).To(Succeed())
		}
		there, err := os.ReadFile(filepath.Clean(file))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(there)).To(Equal(drawn),
			"a run prints something else than docs/run.svg shows: run ci/pages and commit the difference")
	})
})

var (
	frame   = regexp.MustCompile(`#\d+ <--`)
	took    = regexp.MustCompile(`\b\d+(\.\d)?m?s\b`)
	details = regexp.MustCompile(`(?ms)^ +last  .*?^( +run again )`)
	notes   = regexp.MustCompile(`(?m)^(the agent talks|an agent without a profile) .*\n`)
	colours = map[string]string{"ok": "#4cc26a", "FAIL": "#ff7b72", "$": "#8b949e"}
)

// picture is a terminal with a command line and what it prints, without what differs from
// run to run and without the frames.
func picture(command, text string) string {
	text = frame.ReplaceAllString(text, "#15 <--")
	text = details.ReplaceAllString(notes.ReplaceAllString(took.ReplaceAllString(text, "20ms"), ""), "$1")
	lines := append([]string{"$ " + command}, strings.Split(strings.TrimSpace(text), "\n")...)
	const columns, wide, high = 112, 8, 20
	lines = wrapped(lines, columns)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="monospace" `+
		`font-size="13" fill="#e6edf3">
<title>acp-test run: one scenario passes, one fails, with the cause and what to do next</title>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
`, columns*wide+2*high, (len(lines)+2)*high)
	for i, line := range lines {
		first, _, _ := strings.Cut(line, " ")
		fill := ""
		if colour := colours[first]; colour != "" {
			fill = fmt.Sprintf(` fill="%s"`, colour)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve"%s>`, high, (i+2)*high, fill)
		Expect(xml.EscapeText(&b, []byte(line))).To(Succeed())
		b.WriteString("</text>\n")
	}
	return b.String() + "</svg>\n"
}

// wrapped breaks lines that are too long at a space; the rest stands below the value of the field.
func wrapped(lines []string, columns int) (all []string) {
	for _, line := range lines {
		for len([]rune(line)) > columns {
			at := strings.LastIndex(string([]rune(line)[:columns]), " ")
			all, line = append(all, line[:at]), strings.Repeat(" ", 19)+line[at+1:]
		}
		all = append(all, line)
	}
	return all
}
