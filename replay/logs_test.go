package replay_test

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/tools/txtar"

	"github.com/acp-test/acp-test/internal/logs"
	"github.com/acp-test/acp-test/protocol/acp/recordings"
	"github.com/acp-test/acp-test/replay"
	"github.com/acp-test/acp-test/scenarios/results"
)

// postedLog reads a file of testdata/logs: each holds the same conversation in the form of another
// program. Times says that it tells when each message came, 137 ms apart.
func postedLog(file string) (text []byte, times bool) {
	archive, err := txtar.ParseFile(file)
	Expect(err).NotTo(HaveOccurred(), file)
	Expect(archive.Files).To(HaveLen(1), file)
	return archive.Files[0].Data, strings.Contains(string(archive.Comment), "times")
}

var _ = Describe("logs of other programs", func() {
	files, err := filepath.Glob("testdata/logs/*.txtar")
	if err != nil || len(files) < 40 {
		panic("testdata/logs holds fewer than 40 logs")
	}
	var want string
	BeforeEach(func() {
		text, _ := postedLog("testdata/logs/dir-frame.txtar")
		t, err := replay.Read(recordings.V1(), bytes.NewReader(text), nil)
		Expect(err).NotTo(HaveOccurred())
		want = judge.Canonical(t)
		Expect(strings.Split(strings.TrimSpace(want), "\n")).To(HaveLen(9))
		Expect(want).To(ContainSubstring(`--> ok 9 bytes`))
	})

	for _, file := range files {
		It("are read: "+strings.TrimSuffix(filepath.Base(file), ".txtar"), func() {
			text, times := postedLog(file)
			t, err := replay.Read(recordings.V1(), bytes.NewReader(text), nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(judge.Canonical(t)).To(Equal(want), t.ImportedAs())
			Expect(t.Skipped()).To(BeEmpty())
			if !times {
				return
			}
			for e := range replay.Frames(t) {
				Expect(e.At).To(BeNumerically("~", time.Duration(e.Seq-1)*137*time.Millisecond, time.Millisecond), "#%d", e.Seq)
			}
		})
	}

	It("are read packed, in UTF-16 and with a byte order mark", func() {
		text, _ := postedLog("testdata/logs/arrows.txtar")
		var packed, wide bytes.Buffer
		z := gzip.NewWriter(&packed)
		Expect(z.Write(text)).Error().NotTo(HaveOccurred())
		Expect(z.Close()).To(Succeed())
		for _, unit := range append([]uint16{0xfeff}, utf16.Encode([]rune(string(text)))...) {
			wide.Write([]byte{byte(unit), byte(unit >> 8)})
		}
		for _, file := range [][]byte{packed.Bytes(), wide.Bytes(), append([]byte("\xef\xbb\xbf"), text...)} {
			in, err := logs.Open(bytes.NewReader(file))
			Expect(err).NotTo(HaveOccurred())
			t, err := replay.Read(recordings.V1(), in, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(judge.Canonical(t)).To(Equal(want))
		}
	})

	It("are said to be what they were taken for", func() {
		text, err := os.ReadFile("testdata/logs/jetbrains.txtar")
		Expect(err).NotTo(HaveOccurred())
		t, err := replay.Read(recordings.V1(), bytes.NewReader(text), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(t.ImportedAs()).To(Equal("lines with 9 messages, 3 other lines, without the log's own members type"))
	})

	It("blame nobody for messages that cannot be read", func() {
		text, _ := postedLog("testdata/logs/tee.txtar")
		lines := strings.SplitAfter(strings.TrimSpace(string(text)), "\n")
		random := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			broken := slices.Clone(lines)
			for _, n := range random.Perm(len(broken))[:1+random.IntN(2)] {
				switch line := broken[n]; random.IntN(4) {
				case 0: // cut off
					broken[n] = line[:strings.Index(line, "{")+1+random.IntN(len(line)-strings.Index(line, "{")-1)] + "\n"
				case 1: // shortened, as loggers do
					broken[n] = line[:strings.Index(line, "{")+20] + "... (41 more bytes)\n"
				case 2: // a quote lost
					at := strings.LastIndex(line, `"`)
					broken[n] = line[:at] + line[at+1:]
				case 3: // broken in two, with another line between
					at := strings.Index(line, "{") + 10 + random.IntN(len(line)-strings.Index(line, "{")-12)
					broken[n] = line[:at] + "\n[info] tick\n" + line[at:]
				}
			}
			t, err := replay.Read(recordings.V1(), strings.NewReader(strings.Join(broken, "")), nil)
			Expect(err).NotTo(HaveOccurred())
			for _, f := range judge.Check("x", t).Findings {
				Expect(f.Class).To(Equal(results.Inconclusive), "%s %s\n%s", f.Rule, f.Message, strings.Join(broken, ""))
			}
		}
	})
})
