package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/transcript"
)

// Address is the URL of a server. It may begin with $PRINTED, which is replaced
// by the URL that the server prints. It may also begin with ws:$PRINTED, which
// is a WebSocket at that URL.
type Address string

// Client returns an HTTP client that keeps cookies, as browsers do. It does not
// follow redirects, because these could lead a whole conversation to another
// host. dial makes its connections; nil selects the default.
func Client(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	cookies, _ := cookiejar.New(nil) // cookiejar.New never fails
	return &http.Client{
		Jar: cookies,
		Transport: &http.Transport{
			DialContext: dial, DisableCompression: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
			ResponseHeaderTimeout: time.Minute, MaxResponseHeaderBytes: 1 << 20,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var printedURL = lazy.Regexp(`(?:http|ws)s?://[A-Za-z0-9.:\[\]_-]+(?:/[^\s"'<>\x1b]*)?[\s"'<>\x1b]`)

// Find waits until the URL is known and a server listens there, for as long as
// a server may need to start. If ours is false, acp-test did not start the
// server, so the server must already be listening. t is the transcript that
// contains the server's output.
func (a Address) Find(ctx context.Context, t *transcript.Transcript, conn int, ours bool) (*url.URL, error) {
	at, err := a.printed(ctx, t, conn)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL of an agent", at)
	}
	return u, listening(ctx, t, u, ours)
}

// printed returns the URL. It replaces $PRINTED by the address that the server
// prints.
func (a Address) printed(ctx context.Context, t *transcript.Transcript, conn int) (string, error) {
	if !strings.Contains(string(a), "$PRINTED") {
		return string(a), nil
	}
	var found string
	o := t.Await(ctx, 0, transcript.Expect("a URL that the server prints", func() transcript.Fold {
		var text []byte
		return func(entry transcript.Entry) (transcript.Verdict, string) {
			if entry.Source == transcript.Stderr && entry.Conn == conn && len(text) < 1<<20 {
				text = append(text, entry.Raw...)
				if at := printedURL().Find(text); at != nil {
					found = string(at[:len(at)-1])
					return transcript.Met, ""
				}
			}
			return transcript.Unmet, "it has printed no URL"
		}
	}))
	if !o.Met() {
		return "", fmt.Errorf("the server printed no URL: %s", cmp.Or(o.Reason, "it does not say where it listens"))
	}
	scheme, rest, _ := strings.Cut(string(a), "$PRINTED")
	if scheme == "ws:" {
		found = strings.Replace(found, "http", "ws", 1)
	}
	if rest != "" {
		found = strings.TrimSuffix(found, "/")
	}
	return strings.Replace(found, "//0.0.0.0:", "//127.0.0.1:", 1) + rest, nil
}

// listening waits until the server accepts connections. It has to try
// repeatedly, because no event announces this.
func listening(ctx context.Context, t *transcript.Transcript, u *url.URL, ours bool) error {
	usual := map[string]string{"https": "443", "wss": "443"}[u.Scheme]
	host := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), usual, "80"))
	gone := transcript.First("its end", func(entry transcript.Entry) bool {
		return entry.Source == transcript.Process && entry.Kind == transcript.Exited
	})
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
		if err == nil && (u.Scheme == "https" || u.Scheme == "wss") {
			return shakesHands(ctx, c, u)
		}
		if err == nil {
			return c.Close()
		}
		if !ours {
			return fmt.Errorf("nobody listens at %s: %w", u.Redacted(), err)
		}
		pause, stop := context.WithTimeout(ctx, 10*time.Millisecond)
		o := t.Await(pause, 0, gone)
		stop()
		if o.Met() || ctx.Err() != nil {
			return fmt.Errorf("nobody listens at %s: %w", u.Redacted(), err)
		}
	}
}

// Authorities is the environment variable that names a file with the
// certificates of trusted authorities. The TLS library reads it, except on
// macOS and Windows.
const Authorities = "SSL_CERT_FILE"

// shakesHands performs the TLS handshake with the server of u over c. It closes
// c and returns the error of the handshake.
func shakesHands(ctx context.Context, c net.Conn, u *url.URL) error {
	defer c.Close()
	err := tls.Client(c, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}).HandshakeContext(ctx)
	var unknown x509.UnknownAuthorityError
	var plain tls.RecordHeaderError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return fmt.Errorf("the authority behind the certificate of %s is not trusted: set %s to a file with the "+
			"certificates of trusted authorities: %w", u.Redacted(), Authorities, err)
	case errors.As(err, &plain):
		return fmt.Errorf("the server at %s does not speak TLS: begin the URL with http://", u.Redacted())
	}
	return fmt.Errorf("the TLS handshake with %s failed: %w", u.Redacted(), err)
}
