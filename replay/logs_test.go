package replay_test

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"os"
	"path/filepath"
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
				Expect(e.At).To(BeNumerically("~", time.Duration(e.Seq-1)*137*time.Millisecond, time.Millisecond),
					"#%d", e.Seq)
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
		random := rand.New(rand.NewPCG(1, 2))
		read := 0
		for n := range 440 {
			file := files[n%len(files)]
			text, _ := postedLog(file)
			broken := damaged(random, string(text))
			t, err := replay.Read(recordings.V1(), strings.NewReader(broken), nil)
			if err != nil {
				continue // refused, which blames nobody
			}
			read++
			for _, f := range judge.Check("x", t).Findings {
				Expect(f.Class).To(Equal(results.Inconclusive), "%s: %s %s\n%s", file, f.Rule, f.Message, broken)
			}
		}
		Expect(read).To(BeNumerically(">=", 300))
	})
})

// damaged is a log in which one or two lines that hold a part of a message are damaged, as terminals, loggers and hands
// do.
func damaged(random *rand.Rand, text string) string {
	lines := strings.SplitAfter(strings.TrimSpace(text), "\n")
	var whole []int
	for n, line := range lines {
		if len(line) > 40 && strings.ContainsAny(line, "{}") {
			whole = append(whole, n)
		}
	}
	if len(whole) == 0 {
		return text
	}
	random.Shuffle(len(whole), func(i, j int) { whole[i], whole[j] = whole[j], whole[i] })
	for _, n := range whole[:1+random.IntN(min(2, len(whole)))] {
		line := lines[n]
		brace := max(strings.Index(line, "{"), 0)
		at := brace + 1 + random.IntN(len(line)-brace-1)
		switch random.IntN(4) {
		case 0: // cut off
			lines[n] = line[:at] + "\n"
		case 1: // shortened, as loggers do
			lines[n] = line[:min(brace+20, len(line)-1)] + "... (41 more bytes)\n"
		case 2: // a quote lost
			if at = strings.LastIndex(line, `"`); at >= 0 {
				lines[n] = line[:at] + line[at+1:]
			}
		case 3: // broken in two, with another line between
			lines[n] = line[:at] + "\n[info] tick\n" + line[at:]
		}
	}
	return strings.Join(lines, "")
}
