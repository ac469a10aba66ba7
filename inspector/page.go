package inspector

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/internal/printable"
)

//go:embed page
var files embed.FS

// top is the beginning of the page, up to its script. It is a format string for the policy, the title and the style.
//
//go:embed head.html
var top string

// modules lists the parts of the page's script. Each follows the modules that it imports.
var modules = strings.Fields("dom panes findings filter trace fields source table spans scale lanes plot timeline " +
	"causes detail conversation state compare actions compose scratch proof moment overview tables cases scenario main")

// Style returns the style sheet of all pages.
func Style() string { return read("tokens.css") + read("style.css") }

func read(name string) string {
	text, err := files.ReadFile("page/" + name)
	if err != nil {
		panic(err) // cannot happen: the file is embedded
	}
	return string(text)
}

// script returns all modules as one script, without their imports and exports. This works because no two modules
// define the same name, which a test checks.
var script = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range modules {
		b.WriteString(joined().ReplaceAllString(read(name+".js"), ""))
	}
	b.WriteString("})();\n")
	return b.String()
})

var joined = lazy.Regexp(`(?m)^import [^;]*;\n|^export `)

// policy returns a content security policy that allows the page only its own script and style, and connections to the
// origins in connect.
func policy(connect string) string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src " + hash(Style()) + "; script-src " + hash(script()) + "; connect-src " +
		connect + "; base-uri 'none'; form-action 'none'"
}

// WritePage writes a page that contains its data, so that a browser can open the page from the disk. run is the run's
// results.json. For each result in it, data yields a JSON object with the output of Pack, encoded by Packed. This
// encoding contains no characters that could end an HTML element. p is the protocol of the run.
func WritePage(w io.Writer, title string, run []byte, p Protocol, data iter.Seq[string]) error {
	b := bufio.NewWriterSize(w, 1<<16)
	head(b, title, policy("'none'"))
	harmless := strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(string(run)) // safe in HTML
	fmt.Fprintf(b, "<script type=\"application/json\" id=\"run\">%s</script>\n", harmless)
	if p.Fields != nil {
		fmt.Fprint(b, "<script type=\"text/plain\" id=\"fields\">")
		z := Packed(b)
		if err := errors.Join(json.NewEncoder(z).Encode(p.Fields()), z.Close()); err != nil {
			return err
		}
		fmt.Fprint(b, "</script>\n")
	}
	n := 0
	for packed := range data {
		fmt.Fprintf(b, "<script type=\"text/plain\" id=\"t%d\">%s</script>\n", n, packed)
		n++
	}
	foot(b)
	return b.Flush()
}

func head(w io.Writer, title, policy string) {
	fmt.Fprintf(w, top, policy, html.EscapeString(printable.Text(title)), Style())
}

func foot(w io.Writer) { fmt.Fprintf(w, "<script>%s</script>\n</body>\n</html>\n", script()) }
