package replay_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
)

// program starts one of the programs of this test binary, or another.
func program(b *testing.B, argv ...string) (io.WriteCloser, *bufio.Reader) {
	b.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	return in, bufio.NewReaderSize(out, 64<<10)
}

func frame(size int) []byte {
	line := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1",` +
		`"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`)
	pad := size - len(line) - len("\"}}}}\n")
	line = append(line, strings.Repeat("the quick brown fox ", pad/20+1)[:pad]...)
	return append(line, "\"}}}}\n"...)
}

// The time a frame takes there and back, beside a direct pipe to the same
// program; the difference at the median and the 99th percentile is what the
// proxy adds.
func BenchmarkRoundTrip(b *testing.B) {
	for _, size := range []int{200, 1024} {
		for _, way := range []string{"direct", "cats", "proxy"} {
			b.Run(fmt.Sprintf("%s/%dB", way, size), func(b *testing.B) {
				argv := []string{self(), "cat"}
				switch way {
				case "cats": // what two programs that only pass bytes on cost
					argv = []string{"sh", "-c", `cat | "$0" cat | cat`, self()}
				case "proxy":
					argv = append([]string{self(), "proxy", filepath.Join(b.TempDir(), "r.jsonl")}, argv...)
				}
				in, out := program(b, argv...)
				line := frame(size)
				took := make([]time.Duration, 0, b.N)
				buf := make([]byte, len(line))
				for range b.N {
					start := time.Now()
					if _, err := in.Write(line); err != nil {
						b.Fatal(err)
					}
					if _, err := io.ReadFull(out, buf); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
			})
		}
	}
}

// The rate at which lines pass to a program that throws them away, beside cat
// and beside a pipe that only looks whether they are JSON.
func BenchmarkRate(b *testing.B) {
	for _, size := range []int{1 << 10, 8 << 20} {
		for _, way := range []string{"cat", "json-valid", "proxy"} {
			b.Run(fmt.Sprintf("%s/%dKiB", way, size>>10), func(b *testing.B) {
				script := map[string]string{"cat": "cat | cat >/dev/null", "json-valid": `"$0" valid | cat >/dev/null`,
					"proxy": `"$0" proxy "$1" sh -c "cat >/dev/null"`}[way]
				cmd := exec.Command("sh", "-c", script, self(), filepath.Join(b.TempDir(), "r.jsonl"))
				in, err := cmd.StdinPipe()
				if err != nil {
					b.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				line := frame(size)
				batch := line
				if size < 64<<10 {
					batch = bytes.Repeat(line, 64)
				}
				b.SetBytes(int64(size))
				b.ResetTimer()
				for left := b.N; left > 0; {
					n := min(left, len(batch)/size)
					if _, err := in.Write(batch[:n*size]); err != nil {
						b.Fatal(err)
					}
					left -= n
				}
				in.Close()
				if err := cmd.Wait(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// What redaction costs a frame.
func BenchmarkRedact(b *testing.B) {
	for _, size := range []int{1 << 10, 8 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			redact := replay.Redaction{Protocol: recordings.V1()}.Func()
			e := transcript.Entry{Source: transcript.Agent, Kind: transcript.Notification, Method: "session/update",
				Session: "sess_1", Raw: bytes.TrimSpace(frame(size))}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for range b.N {
				redact(e)
			}
		})
	}
}
