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

// Pack writes the entries of the transcript in r as the members "rows" and "names" of a JSON object, without its
// braces, for a page that contains its data. The text of an entry comes from p. If a line of the file is invalid, it
// returns the error after writing the entries before it.
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

// Packed returns a writer that encodes its input for the page: base64 of its gzip. The output is complete after Close.
func Packed(w io.Writer) io.WriteCloser {
	in64 := base64.NewEncoder(base64.StdEncoding, w)
	return packer{gzip.NewWriter(in64), in64}
}

type packer struct {
	*gzip.Writer
	in64 io.WriteCloser
}

func (p packer) Close() error { return errors.Join(p.Writer.Close(), p.in64.Close()) }
