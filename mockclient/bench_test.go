package mockclient_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/transcript"
)

// BenchmarkUpdates is one notification of an agent, from its write to the
// transcript.
func BenchmarkUpdates(b *testing.B) {
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	if err != nil {
		b.Fatal(err)
	}
	line := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",` +
		`"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a few words of text"}}}}` +
		"\n")
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	b.ResetTimer()
	a := mockclient.InProcess(log, 0, func(_ context.Context, _ io.Reader, out io.Writer) error {
		for range b.N {
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
		return nil
	})
	e := mockclient.NewEditor(a, mockclient.Options{})
	<-a.Exited()
	b.StopTimer()
	e.Close(context.Background())
}

// BenchmarkCall is one request to an agent and its answer.
func BenchmarkCall(b *testing.B) {
	log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
	if err != nil {
		b.Fatal(err)
	}
	e := mockclient.NewEditor(mockclient.InProcess(log, 0, serve(func(p *peer) {
		for {
			m, ok := p.read()
			if !ok {
				return
			}
			p.reply(m, `{}`)
		}
	})), mockclient.Options{})
	defer e.Close(context.Background())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Call("x", nil).Wait(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is a process from its start to its end, with and without a
// keeper.
func BenchmarkStart(b *testing.B) {
	for _, keeper := range [][]string{nil, keeperCommand} {
		b.Run(fmt.Sprintf("keeper=%v", keeper != nil), func(b *testing.B) {
			for b.Loop() {
				log, err := transcript.New(transcript.Header{}, transcript.Options{Classifier: acpframe.Classifier{}})
				if err != nil {
					b.Fatal(err)
				}
				a, err := mockclient.Start(context.Background(), log, 0,
					mockclient.Command{Path: self, Args: []string{"agent-echo"}, Keeper: keeper})
				if err != nil {
					b.Fatal(err)
				}
				a.Stop(context.Background())
				log.Close()
			}
		})
	}
}
