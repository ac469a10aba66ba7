package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/transcript"
)

// recordModel makes a script of what providers answer, until ctx ends.
func (h *host) recordModel(ctx context.Context, o *modelServer, t *transcript.Transcript) error {
	if _, err := os.Lstat(o.record); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--record %s: it exists already, and no recording replaces another", o.record)
	}
	c, err := o.recording()
	if err != nil {
		return err
	}
	c.Transcript, c.Listen, c.Transport = t, o.listen(), wayOut()
	rec, err := fakellm.Record(c)
	if err != nil {
		return err
	}
	failed, stop := keepScript(rec, t, o.record)
	fmt.Fprintln(h.out, rec.URL())
	select {
	case <-ctx.Done():
	case <-failed:
	}
	if err := stop(); err != nil {
		return err
	}
	if len(rec.Script()) == 0 {
		return fmt.Errorf("--record %s: nothing was recorded, because no model was asked", o.record)
	}
	return nil
}

// wayOut makes the calls to providers. It is the user's: here the proxy of the
// environment counts.
func wayOut() *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, IdleConnTimeout: time.Minute}
}

// keepScript writes what is recorded to a file after each answer, since it may
// have cost money. failed is closed when that is not possible; stop ends the
// recorder, and returns what went wrong. Without an answer no file is made.
func keepScript(rec *fakellm.Recorder, t *transcript.Transcript, file string) (failed <-chan struct{},
	stop func() error) {
	answered, quit, bad := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	t.Observe(func(e transcript.Entry) {
		if e.Kind == transcript.ModelDone {
			select {
			case answered <- struct{}{}:
			default:
			}
		}
	})
	ended := make(chan error, 1)
	go func() {
		for {
			select {
			case <-answered:
				if err := saveScript(file, rec.Script()); err != nil {
					close(bad)
					ended <- err
					return
				}
			case <-quit:
				ended <- nil
				return
			}
		}
	}()
	return bad, func() error {
		close(quit)
		if err := errors.Join(<-ended, rec.Close()); err != nil {
			return err
		}
		if script := rec.Script(); len(script) > 0 {
			return saveScript(file, script)
		}
		return nil
	}
}

// recording takes [FORMAT=]URL apart.
func (o *modelServer) recording() (c fakellm.RecordConfig, err error) {
	c.Upstreams = map[string]string{}
	for _, u := range o.upstreams {
		format, url, ok := strings.Cut(u, "=")
		switch {
		case !ok || strings.Contains(format, ":"): // a URL may hold =
			c.Upstream = u
		case !slices.Contains(fakellm.Wires(), format):
			return c, oneOf("--upstream", "wire format", format, fakellm.Wires())
		default:
			c.Upstreams[format] = url
		}
	}
	if o.wire != "" {
		c.Upstreams = map[string]string{o.wire: cmp.Or(c.Upstreams[o.wire], c.Upstream)}
		c.Upstream = ""
	}
	return c, nil
}

// saveScript replaces the file as a whole: a reader never sees half of it.
func saveScript(file string, script []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".recording-*") // only its owner may read it
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	_, err = f.Write(script)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what matters is why it was not written
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}
