package wire_test

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/wire"
)

func ExampleClassifyLine() {
	s := wire.NewSplitter(strings.NewReader("Loading…\n"+
		`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1}}`+"\n"), 0)
	var d wire.Doc
	for line, err := s.Next(); err == nil; line, err = s.Next() {
		f := wire.ClassifyLine(&d, line.Bytes)
		fmt.Println(f.Kind, f.ID, f.Method, f.Params.Get("protocolVersion").Text(), f.Problem)
	}
	// Output:
	// malformed    the line is not JSON but other text; log lines belong on stderr: Loading…
	// request 7 initialize 1
}
