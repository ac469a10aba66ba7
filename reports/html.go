package reports

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/acp-test/acp-test/golden"
	"github.com/acp-test/acp-test/internal/confined"
	"github.com/acp-test/acp-test/scenarios"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// The page is one file. What a scenario did is in it as compressed text, which
// the page unpacks when the scenario is opened; so it opens at once, however
// long the run. It makes all of its elements with textContent, and its policy
// allows the one script below and no connection: nothing an agent sent can run.
var (
	//go:embed page/page.css
	pageStyle string
	//go:embed page/page.js
	pageScript string
)

// What is too long for the page is cut there; it is whole in the transcript.
const (
	rawLimit      = 16 << 10
	artifactLimit = 256 << 10
)

func writeHTML(text golden.Renderer, run scenarios.Run, w io.Writer) error {
	run.Version = Version
	data, err := json.Marshal(run) // escapes <, > and &, so it cannot end the element
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	hash := sha256.Sum256([]byte(pageScript))
	title := strings.TrimSpace(run.Agent.Profile + " " + run.Agent.Version)
	fmt.Fprintf(b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="%s'sha256-%s'; base-uri 'none'; form-action 'none'">
<title>%s: %s</title>
<style>
%s</style>
</head>
<body>
<noscript>This page needs JavaScript. The same results are in results.json and junit.xml beside it.</noscript>
<div id="app"></div>
<script type="application/json" id="run">%s</script>
`, "default-src 'none'; style-src 'unsafe-inline'; script-src ", base64.StdEncoding.EncodeToString(hash[:]),
		html.EscapeString(harmless(title)), html.EscapeString(string(run.Verdict)), pageStyle, data)
	for i, packed := range packAll(text, run) {
		fmt.Fprintf(b, "<script type=\"text/plain\" id=\"t%d\">%s</script>\n", i, <-packed)
	}
	fmt.Fprintf(b, "<script>%s</script>\n</body>\n</html>\n", pageScript)
	return b.Flush()
}

// packAll packs the transcripts on all processors; they come in order.
func packAll(text golden.Renderer, run scenarios.Run) []chan string {
	packed := make([]chan string, len(run.Results))
	for i := range packed {
		packed[i] = make(chan string, 1)
	}
	if len(packed) == 0 {
		return nil
	}
	next := make(chan int, len(packed))
	for i := range packed {
		next <- i
	}
	close(next)
	for range min(runtime.GOMAXPROCS(0), len(packed)) {
		go func() {
			for i := range next {
				packed[i] <- pack(text, run.Out, run.Results[i])
			}
		}()
	}
	return packed
}

// pack reads what belongs to a result and compresses it, entry by entry. What cannot
// be read is told on the page, not to the caller: the rest of the report stands.
func pack(text golden.Renderer, out string, r scenarios.Result) string {
	var b bytes.Buffer
	in64 := base64.NewEncoder(base64.StdEncoding, &b)
	z, _ := gzip.NewWriterLevel(in64, gzip.BestSpeed) // the level is one there is
	// Writing to memory does not fail, and every field can be marshalled.
	d := json.NewEncoder(z)
	d.SetEscapeHTML(false)
	var rest struct { // besides the entries, what the page shows of one scenario
		Cut       []int  `json:"cut,omitempty"`
		Rendered  string `json:"rendered,omitempty"`
		Workspace string `json:"workspace,omitempty"`
		Problem   string `json:"problem,omitempty"`
	}
	_, _ = io.WriteString(z, `{"entries":[`)
	root, err := confined.Open(orDot(out))
	if err != nil {
		rest.Problem = fmt.Sprintf("the files of this run cannot be read: %v", err)
	} else {
		defer root.Close()
		comma := ""
		err := readEntries(text, root, r.Artifacts["transcript"], func(e transcript.Entry, line string) {
			raw := string(bytes.ToValidUTF8(e.Raw, []byte("\ufffd")))
			if len(raw) > rawLimit {
				raw = wire.Clip(raw, rawLimit)
				rest.Cut = append(rest.Cut, e.Seq)
			}
			_, _ = io.WriteString(z, comma)
			_ = d.Encode([]any{e.Seq, e.At.Microseconds(), e.Conn, e.Source, e.Kind, e.Ref, line, raw})
			comma = ","
		})
		if err != nil {
			rest.Problem = fmt.Sprintf("the transcript cannot be read: %v", err)
		}
		rest.Rendered, rest.Workspace = readSome(root, r.Artifacts["rendered"]), readSome(root, r.Artifacts["workspace"])
	}
	more, _ := json.Marshal(rest)
	_, _ = io.WriteString(z, "]")
	if len(more) > len("{}") {
		_, _ = fmt.Fprintf(z, ",%s", more[1:])
	} else {
		_, _ = io.WriteString(z, "}")
	}
	_ = z.Close()
	_ = in64.Close()
	return b.String()
}

func orDot(dir string) string {
	return cmp.Or(dir, ".")
}

// readEntries calls do with each entry of a transcript and its line.
func readEntries(render golden.Renderer, root *confined.Root, name string, do func(transcript.Entry, string)) error {
	if name == "" {
		return fmt.Errorf("the run kept none")
	}
	file, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer file.Close()
	return transcript.Scan(file, nil, func(e transcript.Entry) { do(e, wire.Clip(harmless(render.Line(e)), 600)) })
}

func readSome(root *confined.Root, name string) string {
	if name == "" {
		return ""
	}
	file, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return "(cannot be read: " + err.Error() + ")"
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, artifactLimit+1))
	if err != nil {
		return "(cannot be read: " + err.Error() + ")"
	}
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\ufffd"))
	}
	return wire.Clip(string(data), artifactLimit)
}
