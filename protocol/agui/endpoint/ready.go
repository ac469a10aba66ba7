package endpoint

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/acp-test/acp-test/transcript"
)

// At returns the endpoint at a URL, which may begin with $PRINTED.
func At(url string) *Endpoint {
	cookies, _ := cookiejar.New(nil) // it fails at nothing
	return &Endpoint{
		given: url, items: make(chan item), over: make(chan struct{}), dead: make(chan struct{}),
		streams: map[int]context.CancelCauseFunc{},
		client: &http.Client{
			Jar: cookies, // as browsers keep them
			Transport: &http.Transport{
				DisableCompression: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
				ResponseHeaderTimeout: time.Minute, MaxResponseHeaderBytes: 1 << 20,
			},
			// A client that follows one may post a whole conversation to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

var printedURL = regexp.MustCompile(`https?://[A-Za-z0-9.:\[\]_-]+(?:/[^\s"'<>\x1b]*)?[\s"'<>\x1b]`)

// Ready waits until the URL is known and somebody listens there, as long as the server
// may be starting: one that is not ours, ours says false, has to listen already. t is the
// transcript in which the server's output is.
func (e *Endpoint) Ready(ctx context.Context, t *transcript.Transcript, conn int, ours bool) error {
	e.mu.Lock()
	known := e.url != ""
	e.mu.Unlock()
	if known {
		return nil
	}
	at, err := e.printed(ctx, t, conn)
	if err != nil {
		return err
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is no URL of an agent", at)
	}
	if err := e.listening(ctx, t, u, ours); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.url = at
	return nil
}

// printed returns the URL, with the address that the server prints instead of $PRINTED.
func (e *Endpoint) printed(ctx context.Context, t *transcript.Transcript, conn int) (string, error) {
	if !strings.Contains(e.given, "$PRINTED") {
		return e.given, nil
	}
	var found string
	o := t.Await(ctx, 0, transcript.Expect("a URL that the server prints", func() transcript.Fold {
		var text []byte
		return func(entry transcript.Entry) (transcript.Verdict, string) {
			if entry.Source == transcript.Stderr && entry.Conn == conn && len(text) < 1<<20 {
				text = append(text, entry.Raw...)
				if at := printedURL.Find(text); at != nil {
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
	rest := strings.TrimPrefix(e.given, "$PRINTED")
	if rest != "" {
		found = strings.TrimSuffix(found, "/")
	}
	return strings.Replace(found, "//0.0.0.0:", "//127.0.0.1:", 1) + rest, nil
}

// listening waits until a connection can be made. Nobody tells when that is so: it
// can only be tried.
func (e *Endpoint) listening(ctx context.Context, t *transcript.Transcript, u *url.URL, ours bool) error {
	host := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80"))
	gone := transcript.First("its end", func(entry transcript.Entry) bool {
		return entry.Source == transcript.Process && entry.Kind == transcript.Exited
	})
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
		if err == nil && u.Scheme == "https" {
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
