package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/acp-test/acp-test/transcript"
)

// ErrNothingPosted is the error for a recording that has no post of a front end.
var ErrNothingPosted = errors.New("no front end posts anything in the recording")

// posted is a post of a front end in a recording.
type posted struct {
	body []byte
	// began is the Seq of the post. ended is the Seq of the end of the answer. If the answer did not end, it is the
	// last Seq of the recording.
	began, ended int
	// accept is the value of the Accept header. events is the number of events in the answer. gone says that the front
	// end hung up after them.
	accept string
	events int
	gone   bool
}

func postsOf(recording *transcript.Transcript) (all []*posted) {
	by := map[int]*posted{}
	for e := range recording.All() {
		p := by[e.Ref]
		switch {
		case e.Source == transcript.Editor && e.Kind != transcript.Written:
			p = &posted{accept: EventStream, body: bytes.Clone(e.Raw), began: e.Seq, ended: recording.Len()}
			by[e.Seq] = p
			all = append(all, p)
		case p == nil:
		case e.Kind == transcript.Ended:
			p.ended, p.gone = e.Seq, e.JSON().Get("end").Is(HungUp)
		case e.Kind == transcript.Response:
			p.accept = cmp.Or(e.JSON().Get("accept").Str(), p.accept)
		default:
			p.events++
		}
	}
	return all
}

// Again repeats the posts of a recording to a URL, byte for byte. Each post waits for those that had ended before it
// in the recording. Where the front end hung up, Again hangs up after the same number of events. It returns when all
// answers have ended.
func Again(ctx context.Context, recording *transcript.Transcript, at string) error {
	all := postsOf(recording)
	if len(all) == 0 {
		return ErrNothingPosted
	}
	over := make([]chan struct{}, len(all))
	failed := make([]error, len(all))
	var open sync.WaitGroup
	for i, p := range all {
		over[i] = make(chan struct{})
		for j, before := range all[:i] {
			if before.ended < p.began {
				<-over[j]
			}
		}
		open.Go(func() {
			defer close(over[i])
			if err := p.again(ctx, at); err != nil {
				failed[i] = fmt.Errorf("post %d: %w", i+1, err)
			}
		})
	}
	open.Wait()
	return errors.Join(failed...)
}

// again sends the post once. It returns only an error of ctx, because the reader of the stream judges the answer.
func (p *posted) again(ctx context.Context, at string) error {
	mine, hangUp := context.WithCancel(ctx)
	defer hangUp()
	r, err := http.NewRequestWithContext(mine, http.MethodPost, at, bytes.NewReader(p.body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if p.accept != "-" {
		r.Header.Set("Accept", p.accept)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return context.Cause(ctx)
	}
	defer answer.Body.Close()
	if !p.gone {
		_, _ = io.Copy(io.Discard, answer.Body)
		return context.Cause(ctx)
	}
	s := sourceOf(headOf(answer).Type, answer.Body)
	for range p.events {
		if _, err := next(s); err != nil {
			break
		}
	}
	return context.Cause(ctx)
}
