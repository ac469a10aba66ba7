package main

import (
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
	c.Transcript, c.Listen = t, o.listen()
	// The way out is the user's: here the proxy of the environment counts.
	c.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, IdleConnTimeout: time.Minute}
	rec, err := fakellm.Record(c)
	if err != nil {
		return err
	}
	// A recording may have cost money: it is on the disk after each answer.
	answered := make(chan struct{}, 1)
	t.Observe(func(e transcript.Entry) {
		if e.Kind == transcript.ModelDone {
			select {
			case answered <- struct{}{}:
			default:
			}
		}
	})
	fmt.Fprintln(h.out, rec.URL())
	for open := true; open; {
		select {
		case <-answered:
			err = saveScript(o.record, rec.Script())
		case <-ctx.Done():
			open = false
		}
		if err != nil {
			return errors.Join(err, rec.Close())
		}
	}
	if err := rec.Close(); err != nil {
		return err
	}
	script := rec.Script()
	if len(script) == 0 {
		return fmt.Errorf("--record %s: nothing was recorded, because no model was asked", o.record)
	}
	return saveScript(o.record, script)
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
			return c, unknownWire("--upstream", format)
		default:
			c.Upstreams[format] = url
		}
	}
	if o.wire != "" {
		only := c.Upstream
		if u := c.Upstreams[o.wire]; u != "" {
			only = u
		}
		c.Upstream, c.Upstreams = "", map[string]string{o.wire: only}
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
