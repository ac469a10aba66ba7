package reports_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/protocol/acp/acpframe"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/transcript"
)

// keep writes a transcript of about n frames to dir/<id>/transcript.jsonl.
func keep(dir, id string, n int, text string) error {
	t, err := transcript.New(transcript.Header{Scenario: id}, transcript.Options{Classifier: acpframe.Classifier{}})
	if err != nil {
		return err
	}
	quoted, _ := json.Marshal(text)
	t.AppendFrame(0, transcript.Editor,
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s-1",`+
			`"prompt":[{"type":"text","text":"Go on."}]}}`), 0)
	for i := range n - 2 {
		t.AppendFrame(0, transcript.Agent,
			fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1",`+
				`"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s},`+
				`"_meta":{"n":%d}}}}`, quoted, i), 0)
	}
	t.Append(transcript.Entry{Source: transcript.Stderr, Kind: transcript.Chunk, Raw: []byte(text + "\n")})
	t.AppendFrame(0, transcript.Agent, []byte(`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`), 0)
	if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(id)), 0o777); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(dir, filepath.FromSlash(id), "transcript.jsonl"))
	if err != nil {
		return err
	}
	defer file.Close()
	return t.Save(file)
}

// embedded unpacks what a page holds of its i-th scenario.
func embedded(page string, i int) string {
	found := regexp.MustCompile(fmt.Sprintf(`<script type="text/plain" id="t%d">([A-Za-z0-9+/=]*)</script>`, i)).
		FindStringSubmatch(page)
	ExpectWithOffset(1, found).To(HaveLen(2))
	packed, err := base64.StdEncoding.DecodeString(found[1])
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	z, err := gzip.NewReader(bytes.NewReader(packed))
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	text, err := io.ReadAll(z)
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("the page", func() {
	var run results.Run
	BeforeEach(func() {
		run = sample()
		run.Out = GinkgoT().TempDir()
		Expect(keep(run.Out, "cancel/mid-stream", 10, hostile)).To(Succeed())
	})

	It("holds the run and every transcript, and no network address", func() {
		page := write("html", run)
		Expect(embedded(page, 1)).To(ContainSubstring(`agent_message_chunk`))
		Expect(page).NotTo(MatchRegexp(`(src|href)="?(https?:)?//`))
		data := regexp.MustCompile(`(?s)<script type="application/json" id="run">(.*?)</script>`).
			FindStringSubmatch(page)
		var back results.Run
		Expect(json.Unmarshal([]byte(data[1]), &back)).To(Succeed())
		Expect(back.Results).To(HaveLen(len(run.Results)))
	})

	It("says which transcript cannot be read, and shows the rest", func() {
		page := write("html", run)
		Expect(embedded(page, 0)).To(ContainSubstring("the transcript cannot be read"))
	})

	It("does not read outside of the run's directory", func() {
		secret := filepath.Join(GinkgoT().TempDir(), "secret")
		Expect(os.WriteFile(secret, []byte("top secret"), 0o666)).To(Succeed())
		up, err := filepath.Rel(run.Out, secret)
		Expect(err).NotTo(HaveOccurred())
		run.Results[0].Artifacts = map[string]string{"transcript": up, "rendered": secret, "workspace": up}
		Expect(embedded(write("html", run), 0)).NotTo(ContainSubstring("top secret"))
	})

	It("holds nothing of an agent that could be markup, and allows its own script only", func() {
		run.Agent.Profile = hostile
		page := write("html", run)
		Expect(strings.ToLower(page)).NotTo(ContainSubstring("<script>alert"))
		Expect(strings.Count(page, "</script>")).To(Equal(2 + len(run.Results)))
		script := page[strings.LastIndex(page, "<script>")+len("<script>") : strings.LastIndex(page, "</script>")]
		hash := sha256.Sum256([]byte(script))
		Expect(page).To(ContainSubstring("script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"))
		Expect(script).NotTo(MatchRegexp(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(`))
	})
})

// BenchmarkHTML writes the page of 300 scenarios with 100,000 frames in all.
func BenchmarkHTML(b *testing.B) {
	run := results.Run{Out: b.TempDir()}
	for i := range 300 {
		id := fmt.Sprintf("suite-%d/scenario-%d", i%10, i)
		if err := keep(run.Out, id, 334,
			fmt.Sprintf("words of scenario %d, as many as a model says at a time", i)); err != nil {
			b.Fatal(err)
		}
		run.Results = append(run.Results,
			results.Result{ID: id, Verdict: results.Pass,
				Artifacts: map[string]string{"transcript": id + "/transcript.jsonl"}})
	}
	for b.Loop() {
		var page bytes.Buffer
		if err := reports.Write(inspector.Protocol{Text: canonical.V1()}, "html", run, &page); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(page.Len())/1e6, "MB")
	}
}
