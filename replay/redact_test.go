package replay_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/acp-test/acp-test/internal/secret"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// saved is the text of a recording of lines from the agent.
func saved(r replay.Redaction, fill func(t *transcript.Transcript)) string {
	t, err := transcript.New(transcript.Header{},
		transcript.Options{Classifier: acpframe.Classifier{}, Redact: r.Func()})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	fill(t)
	var b bytes.Buffer
	if err := t.Save(&b); err != nil {
		panic(err)
	}
	return b.String()
}

// Secrets are planted in every place a recording has: none may come out.
func TestNoSecretReachesTheDisk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := rapid.StringMatching(`[A-Za-z0-9"\\$&/éß-]{8,30}`).Draw(t, "value of the environment")
		if strings.HasPrefix(env, "/") {
			env = "x" + env
		}
		key := "sk-" + rapid.StringMatching(`[A-Za-z0-9]{20,40}`).Draw(t, "key")
		own := "ticket-" + rapid.StringMatching(`[0-9]{6}`).Draw(t, "ticket")
		secrets := []string{env, key, own}
		plant := func() string {
			return rapid.SampledFrom([]string{"", "x ", "é\"\\"}).Draw(t, "before") + rapid.SampledFrom(secrets).
				Draw(t, "secret") + rapid.SampledFrom([]string{"", " y", "\n"}).Draw(t, "after")
		}
		mask := rapid.Bool().Draw(t, "mask")
		text := saved(replay.Redaction{Protocol: recordings.V1(),
			Known:    secret.New("MY_API_KEY="+env, "HOME=/root", "TERM=xterm"),
			Patterns: []*regexp.Regexp{regexp.MustCompile(`ticket-\d+`)}, MaskText: mask},
			func(l *transcript.Transcript) {
				str := func() string { return string(wire.AppendString(nil, plant())) }
				l.AppendFrame(0, transcript.Editor,
					fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"session/prompt","params":{"sessionId":%s,`+
						`"prompt":[{"type":"text","text":%s}]}}`, str(), str(), str()), 0)
				l.AppendFrame(0, transcript.Agent,
					fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s,"params":{"a":[%s,{"b":%s,%s:1}]}}`, str(), str(),
						str(), str()), 0)
				l.AppendFrame(0, transcript.Agent, []byte("no JSON: "+strings.ReplaceAll(plant(), "\n", " ")), 0)
				l.Append(transcript.Entry{Source: transcript.Stderr, Kind: transcript.Chunk,
					Raw: []byte("API_KEY=" + plant())})
				l.Event(0, transcript.Process, transcript.Started, "", map[string]any{"args": []string{plant()}})
				l.Append(transcript.Entry{Source: transcript.Editor, Kind: transcript.Written, Problem: plant(),
					Raw: []byte(`{}`)})
			})
		for _, s := range secrets {
			escaped := string(bytes.Trim(wire.AppendString(nil, s), `"`))
			if strings.Contains(text, s) || strings.Contains(text, escaped) {
				t.Fatalf("secret %q is in the file:\n%s", s, text)
			}
		}
		loaded, err := transcript.Load(strings.NewReader(text), acpframe.Classifier{})
		if err != nil {
			t.Fatalf("the file cannot be read back: %v\n%s", err, text)
		}
		loaded.Close()
	})
}

var _ = Describe("redaction", func() {
	frame := func(raw string) func(*transcript.Transcript) {
		return func(t *transcript.Transcript) { t.AppendFrame(0, transcript.Editor, []byte(raw), 0) }
	}

	It("keeps equality and shape", func() {
		text := saved(replay.Redaction{Protocol: recordings.V1()},
			frame(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[{"name":"a",`+
				`"headers":[{"name":"Authorization","value":"Bearer abcdefghijkl"},{"name":"X","value":"Bearer `+
				`abcdefghijkl"}]}],"apiKey":"hunter22","api_key":"hunter22"}}`))
		Expect(text).To(ContainSubstring(`"apiKey":"REDACTED-`))
		first := regexp.MustCompile(`"apiKey":"(REDACTED-\d+)","api_key":"(REDACTED-\d+)"`).FindStringSubmatch(text)
		Expect(first).NotTo(BeNil())
		Expect(first[1]).To(Equal(first[2]))
		Expect(text).NotTo(ContainSubstring("abcdefghijkl"))
		Expect(text).To(ContainSubstring(`"redacted":[`))
		Expect(text).To(ContainSubstring(`"cwd":"/w"`))
	})

	DescribeTable("leaves alone what is no secret", func(raw string) {
		Expect(saved(replay.Redaction{Protocol: recordings.V1(),
			Known: secret.New("HOME=/home/me", "SSH_AUTH_SOCK=/tmp/agent.1", "EDITOR=vi")}, frame(raw))).
			NotTo(ContainSubstring("REDACTED"))
	},
		Entry("a session id", `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"sess_e301cbf1788bc78`+
			`ede14b04b491cc74d"}}`),
		Entry("counts of tokens", `{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn",`+
			`"usage":{"inputTokens":1234567890,"totalTokens":12345678}}}`),
		Entry("a text about tokens", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s",`+
			`"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"the token count and `+
			`the task-list are here"}}}}`),
	)

	It("keeps or masks texts when asked to", func() {
		raw := `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text",` +
			`"text":"use sk-abcdefghijklmnopqrstu"}]}}`
		Expect(saved(replay.Redaction{Protocol: recordings.V1(), KeepText: true}, frame(raw))).To(ContainSubstring(raw))
		Expect(saved(replay.Redaction{Protocol: recordings.V1()}, frame(raw))).
			To(ContainSubstring(`"text":"use REDACTED-1"`))
		Expect(saved(replay.Redaction{Protocol: recordings.V1(), MaskText: true}, frame(raw))).
			To(ContainSubstring(`"text":"REDACTED-1"`))
	})
})
