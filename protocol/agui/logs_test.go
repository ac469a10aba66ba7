package agui_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/protocol/agui"
	"github.com/acp-test/acp-test/protocol/agui/aguirecord"
	"github.com/acp-test/acp-test/replay"
)

// Each file of testdata/logs holds the same run in the form of another program.
func TestLogsOfOtherPrograms(t *testing.T) {
	judge := replay.Judge{Protocol: aguirecord.Protocol{}, Rules: agui.V1().Rules, Text: agui.V1().Canonical}
	read := func(t *testing.T, file string) []byte {
		archive, err := txtar.ParseFile(file)
		if err != nil || len(archive.Files) != 1 {
			t.Fatalf("%s: %v", file, err)
		}
		return archive.Files[0].Data
	}
	plain, err := aguirecord.Read(bytes.NewReader(read(t, "testdata/logs/lines.txtar")))
	if err != nil {
		t.Fatal(err)
	}
	want := judge.Canonical(plain)
	files, err := filepath.Glob("testdata/logs/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d logs: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := read(t, file)
			if !aguirecord.Looks(text) {
				t.Error("it is not taken for a recording of AG-UI")
			}
			log, err := aguirecord.Read(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := judge.Canonical(log); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", log.ImportedAs(), got, want)
			}
			if found := judge.Check("x", log).Findings; len(found) > 0 {
				t.Errorf("findings: %+v", found)
			}
		})
	}
	others, err := filepath.Glob("../../replay/testdata/logs/*.txtar")
	if err != nil || len(others) < 40 {
		t.Fatalf("%d logs of ACP: %v", len(others), err)
	}
	for _, file := range others {
		if aguirecord.Looks(read(t, file)) {
			t.Errorf("%s is taken for a recording of AG-UI", file)
		}
	}
}
