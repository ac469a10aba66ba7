package endpoint

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Authorities is the environment variable that names a file with the certificates of the
// authorities to trust; it is the TLS library that reads it, not on macOS and Windows.
const Authorities = "SSL_CERT_FILE"

// shakesHands reports why no connection over TLS can be made.
func shakesHands(ctx context.Context, c net.Conn, u *url.URL) error {
	defer c.Close()
	err := tls.Client(c, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}).HandshakeContext(ctx)
	var unknown x509.UnknownAuthorityError
	var plain tls.RecordHeaderError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of %s is of an authority that is not trusted here: %s may name a file with "+
			"the certificates of those that are: %w", u.Redacted(), Authorities, err)
	case errors.As(err, &plain):
		return fmt.Errorf("what listens at %s does not speak TLS: begin the URL with http://", u.Redacted())
	}
	return fmt.Errorf("no connection over TLS can be made to %s: %w", u.Redacted(), err)
}

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
