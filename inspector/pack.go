package inspector

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/acp-test/acp-test/transcript"
)

// Pack reads the transcript in r and writes its entries for a page that contains its data. The output is the members
// "rows" and "names" of a JSON object, without the object's braces. p provides the text of each entry. If a line of
// the transcript is invalid, Pack writes the entries before that line and returns an error.
func Pack(w io.Writer, r io.Reader, p Protocol) error {
	d := json.NewEncoder(w)
	d.SetEscapeHTML(false)
	var all names
	comma := ""
	_, _ = io.WriteString(w, `"rows":[`)
	err := transcript.Scan(r, p.Classifier, func(e transcript.Entry) {
		is := all.record(e, p)
		text, cut := raw(e)
		row := []any{is.at, is.origin, is.source, is.kind, is.method, is.label, is.session, is.ref, is.size, p.line(e), text}
		if cut {
			row = append(row, 1)
		}
		_, _ = io.WriteString(w, comma)
		_ = d.Encode(row)
		comma = ","
	})
	_, _ = io.WriteString(w, `],"names":`)
	_ = d.Encode(append([]string{}, all.list...))
	if err != nil {
		return fmt.Errorf("the transcript cannot be read: %w", err)
	}
	return nil
}

// Packed returns a writer that compresses its input with gzip and writes it to w in base64, which the page can
// decode. The output is complete after Close.
func Packed(w io.Writer) io.WriteCloser {
	in64 := base64.NewEncoder(base64.StdEncoding, w)
	return packer{gzip.NewWriter(in64), in64}
}

type packer struct {
	*gzip.Writer
	in64 io.WriteCloser
}

func (p packer) Close() error { return errors.Join(p.Writer.Close(), p.in64.Close()) }
