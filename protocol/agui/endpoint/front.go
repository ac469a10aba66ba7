package endpoint

import (
	"bytes"
	"net/http"

	"github.com/acp-test/acp-test/protocol/agui/aguiproto"
	"github.com/acp-test/acp-test/serve"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// Front returns a server against which front ends are tested. It plays a script. If script is nil, it plays a
// recording: each post gets the next recorded answer.
func Front(p serve.Protocol, script *serve.Script, recording, log *transcript.Transcript) *serve.Web {
	w := &serve.Web{Log: log, Protocol: p, Script: script, Form: formFor}
	if script == nil {
		w.Play = recorded(recording)
	}
	return w
}

// formFor returns the form of the stream for a request: the binary form if the Accept header allows it, else
// server-sent events.
func formFor(accept string) serve.Form {
	if aguiproto.Admitted(accept) {
		return serve.Form{Type: aguiproto.MediaType, Dress: binary}
	}
	return serve.Form{Type: EventStream, Dress: serve.Events}
}

// binary returns a frame in the binary form. If the event has no binary form, it returns an event of an unknown type,
// as an agent of a newer version might send.
func binary(frame []byte) []byte {
	message, err := aguiproto.Encode(frame)
	if err != nil {
		message = aguiproto.Unknown()
	}
	return aguiproto.Framed(message)
}

// recorded returns a function that plays the answers of a recording, one per post. A post after the last recorded one
// gets status 410.
func recorded(recording *transcript.Transcript) func(*serve.Answer, transcript.Entry) {
	answers := map[int][]transcript.Entry{}
	var order []int
	for e := range recording.All() {
		switch {
		case e.Source == transcript.Editor && e.Kind != transcript.Written:
			order = append(order, e.Seq)
		case e.Source == transcript.Agent:
			answers[e.Ref] = append(answers[e.Ref], e)
		}
	}
	if len(order) == 0 { // the recording is only a captured stream
		order = append(order, 0)
	}
	next := make(chan int, len(order))
	for _, ref := range order {
		next <- ref
	}
	close(next)
	return func(a *serve.Answer, post transcript.Entry) {
		ref, more := <-next
		if !more {
			a.Head(http.StatusGone, "text/plain")
			return
		}
		for _, e := range answers[ref] {
			switch e.Kind {
			case transcript.Response:
				if status, _ := e.JSON().Get("status").Int(); status != http.StatusOK {
					a.Head(int(status), e.JSON().Get("type").Str())
				}
			case transcript.Ended:
				if e.JSON().Get("end").Is(Cut) {
					a.Cut()
				}
			default:
				a.Send(renamed(e.Raw, recording.At(ref), post))
			}
		}
	}
}

// renamed returns a recorded event in which the ids of the thread and the run are those of the current post.
func renamed(raw []byte, then, now transcript.Entry) []byte {
	for _, name := range []string{"threadId", "runId"} {
		old, fresh := then.JSON().Get(name), now.JSON().Get(name)
		if old.Kind() == wire.String && fresh.Kind() == wire.String && old.Str() != "" {
			raw = bytes.ReplaceAll(raw, old.Raw(), fresh.Raw())
		}
	}
	return raw
}
