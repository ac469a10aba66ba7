package reports_test

import (
	"bytes"
	"testing"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/reports"
)

// Whatever results.json holds, it is refused or written in all formats.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"version":1,"results":[]}`, `{"version":2}`, `{}`, `[]`, ``,
		`{"version":1,"results":[{"id":"a/b","verdict":"fail","checks":[{"id":"a/b#c","verdict":"fail",` +
			`"failure":{"where":"x:1"}}],` +
			`"findings":[{"rule":"R","class":"warn","message":"m"}],"golden":{"state":"differs","diff":"-a\n+b"}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := reports.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		run.Out = t.TempDir() // which holds nothing
		for _, format := range reports.Formats() {
			var b bytes.Buffer
			if err := reports.Write(inspector.Protocol{Text: canonical.V1()}, format, run, &b); err != nil {
				t.Errorf("%s: %v", format, err)
			}
		}
	})
}
