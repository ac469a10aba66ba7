package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/transport"
	"github.com/acp-test/acp-test/wire"
)

// echo is a transport whose agent sends back each frame it gets, until nothing
// more is sent; a deaf one then stays.
type echo struct {
	frames chan []byte
	closed chan struct{}
	send   sync.Once
	once   sync.Once
	deaf   bool
}

func newEcho(deaf bool) *echo {
	return &echo{frames: make(chan []byte, 10), closed: make(chan struct{}), deaf: deaf}
}

func (e *echo) Send(b []byte) (bool, error) {
	e.frames <- b[:len(b)-1]
	return false, nil
}

func (e *echo) Receive() (wire.Line, error) {
	select {
	case b, ok := <-e.frames:
		if ok {
			return wire.Line{Bytes: b, Terminated: true, Size: len(b)}, nil
		}
	case <-e.closed:
	}
	return wire.Line{}, io.EOF
}

func (e *echo) CloseSend() error {
	if !e.deaf {
		e.send.Do(func() { close(e.frames) })
	}
	return nil
}

func (e *echo) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}

func (e *echo) Unread() (int, bool)              { return 0, false }
func (e *echo) Drained() (<-chan struct{}, bool) { return nil, false }

func newLog(t *testing.T) *transcript.Transcript {
	log, err := transcript.New(transcript.Header{}, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestAgentWithoutProcess(t *testing.T) {
	for _, c := range []struct {
		deaf  bool
		steps []string
	}{{false, []string{"stdin-closed"}}, {true, []string{"stdin-closed", "closed"}}} {
		t.Run(fmt.Sprint(c.steps), func(t *testing.T) {
			log := newLog(t)
			a := transport.New(log, 3, newEcho(c.deaf), transport.Options{Grace: 10 * time.Millisecond})
			frame := []byte(`{"jsonrpc":"2.0","method":"m"}`)
			_, err := a.Send(t.Context(), "\n", func() (transcript.Entry, bool) { return a.Append(frame), true })
			if err != nil {
				t.Fatal(err)
			}
			agents := transcript.First("the echo",
				func(e transcript.Entry) bool { return e.Source == transcript.Agent })
			if o := log.Await(t.Context(), 0, agents); !o.Met() || o.Entry.Method != "m" {
				t.Fatalf("got %+v", o)
			}
			if err := a.Signal(syscall.SIGTERM); !errors.Is(err, transport.ErrNoProcess) {
				t.Errorf("a signal: %v", err)
			}
			if a.HasProcess() || a.PID() != 0 || a.Busy() || a.Descendants() != nil {
				t.Error("an agent without a process has one")
			}
			s := a.Stop(t.Context())
			if !slices.Equal(s.Steps, c.steps) || !s.Exit.Closed {
				t.Errorf("stopped by %v, exit %+v", s.Steps, s.Exit)
			}
			if err := a.Signal(syscall.SIGTERM); !errors.Is(err, transport.ErrExited) {
				t.Errorf("a signal to what has ended: %v", err)
			}
			o := log.Await(t.Context(), 0, transcript.First("more", func(transcript.Entry) bool { return false }))
			if o.Reason != "the connection to the agent ended; no such entry" {
				t.Errorf("waiting for more: %s", o.Reason)
			}
		})
	}
}

func TestReceiveGetsWhatCameBefore(t *testing.T) {
	log := newLog(t)
	a := transport.InProcess(log, 0, func(_ context.Context, in io.Reader, out io.Writer) error {
		fmt.Fprint(out, `{"jsonrpc":"2.0","method":"a"}`+"\n"+`{"jsonrpc":"2.0","method":"b"}`+"\n")
		_, _ = io.ReadFull(in, make([]byte, 1))
		fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"c"}`)
		return nil
	})
	log.Await(t.Context(), 0, transcript.First("b", func(e transcript.Entry) bool { return e.Method == "b" }))
	var got []string
	a.Receive(func(e transcript.Entry) { got = append(got, e.Method) })
	_, _ = a.Send(t.Context(), "\n", func() (transcript.Entry, bool) { return a.Append([]byte("{}")), true })
	<-a.AllReceived()
	if !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %v", got)
	}
	a.Stop(t.Context())
}

// An agent of any protocol can be talked to: here one that answers by itself.
func ExampleInProcess() {
	log, err := transcript.New(transcript.Header{}, transcript.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	a := transport.InProcess(log, 0, func(_ context.Context, in io.Reader, out io.Writer) error {
		lines := wire.NewSplitter(in, 0)
		for {
			if _, err := lines.Next(); err != nil {
				return nil // the end of its input
			}
			fmt.Fprintln(out, `{"jsonrpc":"2.0","id":1,"result":"pong"}`)
		}
	})
	ctx := context.Background()
	_, _ = a.Send(ctx, "\n", func() (transcript.Entry, bool) {
		return a.Append([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)), true
	})
	answer := log.Await(ctx, 0, transcript.First("an answer", func(e transcript.Entry) bool {
		return e.Kind == transcript.Response
	}))
	fmt.Println(answer.Entry.Method, answer.Entry.JSON().Get("result").Str())
	fmt.Println(a.Stop(ctx).Steps)
	// Output:
	// ping pong
	// [stdin-closed]
}

func TestCatchUpWithinThisProcess(t *testing.T) {
	const n = 1000
	for range 20 {
		log, wrote := newLog(t), make(chan struct{})
		a := transport.InProcess(log, 0, func(ctx context.Context, _ io.Reader, out io.Writer) error {
			for range n {
				fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"m"}`)
			}
			close(wrote)
			<-ctx.Done()
			return nil
		})
		<-wrote
		a.CatchUp(t.Context())
		got := 0
		for e := range log.All() {
			if e.Source == transcript.Agent && e.Method == "m" {
				got++
			}
		}
		if got != n {
			t.Fatalf("%d of %d frames are in the transcript", got, n)
		}
		a.CatchUp(t.Context()) // there is nothing more
		a.Kill()
		a.Stop(t.Context())
		a.CatchUp(t.Context()) // nor will there be
	}
}
