package replay_test

import (
	"bytes"
	"testing"

	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
)

// Whatever a file holds, reading it ends with a transcript or with an error, and what
// was read can be written and read again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"acp-test":1,"started":"2026-01-02T03:04:05Z"}` + "\n" +
			`{"seq":1,"ms":1,"from":"agent","kind":"notification","msg":{"jsonrpc":"2.0","method":"_x"}}` + "\n",
		`{"t":1.5,"proc":1,"dir":"in","frame":{"jsonrpc":"2.0","id":1,"method":"initialize"}}` + "\n",
		`{"seq":1,"at":"2026-01-02T03:04:05.000Z","direction":"client-to-agent","message":{"jsonrpc":"2.0","id":1,` +
			`"method":"initialize"}}` + "\n",
		`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", "", "\n", "{", "[1,2]\n", "\x00\xff\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := replay.Read(recordings.V1(), bytes.NewReader(data), nil)
		if err != nil {
			if log != nil || err.Error() == "" {
				t.Errorf("a transcript and an error: %v", err)
			}
			return
		}
		defer log.Close()
		var b bytes.Buffer
		if err := log.Save(&b); err != nil {
			t.Fatal(err)
		}
		again, err := replay.Read(recordings.V1(), &b, nil)
		if err != nil {
			t.Fatalf("what was read and saved cannot be read: %v", err)
		}
		defer again.Close()
		if again.Len() != log.Len() {
			t.Errorf("%d entries became %d", log.Len(), again.Len())
		}
	})
}
