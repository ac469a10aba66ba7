package endpoint

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// unpacked is the body of an answer without the coding that its head names. A server need
// not ask before it sends one, since no head of ours refuses any.
func unpacked(answer *http.Response) (io.ReadCloser, error) {
	coding := strings.ToLower(cmp.Or(answer.Header.Get("Content-Encoding"), "identity"))
	switch coding {
	case "identity":
		return answer.Body, nil
	case "gzip", "x-gzip":
		return &gunzip{body: answer.Body}, nil
	}
	return answer.Body, fmt.Errorf("the body is coded as %q, which nobody asked for", coding)
}

// gunzip reads a body that is compressed, as it comes.
type gunzip struct {
	body io.ReadCloser
	in   *gzip.Reader
}

func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.in == nil {
		if g.in, err = gzip.NewReader(g.body); err != nil {
			return 0, err
		}
	}
	return g.in.Read(p)
}

func (g *gunzip) Close() error { return g.body.Close() }
