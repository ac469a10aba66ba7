package golden_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/golden"
)

var _ = Describe("a store", func() {
	var store golden.Store
	BeforeEach(func() {
		store = golden.Store{Dir: GinkgoT().TempDir(), Embedded: fstest.MapFS{
			"reference/prompt/text.golden": {Data: []byte("embedded\r\ntext\n")},
			"reference/only.golden":        {Data: []byte("only\n")},
			"reference/README.md":          {},
		}}
	})

	It("reads the directory first, then what is embedded", func() {
		text, source, err := store.Read("reference", "prompt/text")
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(Equal("embedded\ntext\n"))
		Expect(source).To(Equal("embedded:reference/prompt/text.golden"))
		Expect(store.Write("reference", "prompt/text", "mine\n")).To(Succeed())
		text, source, err = store.Read("reference", "prompt/text")
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(Equal("mine\n"))
		Expect(source).To(Equal(filepath.Join(store.Dir, "reference", "prompt", "text.golden")))
	})

	It("says that there is none", func() {
		_, _, err := store.Read("reference", "other")
		Expect(errors.Is(err, fs.ErrNotExist)).To(BeTrue())
		Expect(err).To(MatchError(ContainSubstring(`"other"`)))
	})

	It("says why a file cannot be read", func() {
		Expect(os.MkdirAll(filepath.Join(store.Dir, "a", "x.golden"), 0o777)).To(Succeed())
		_, _, err := store.Read("a", "x")
		Expect(err).To(HaveOccurred())
		Expect(errors.Is(err, fs.ErrNotExist)).To(BeFalse())
	})

	It("lists both, each once", func() {
		Expect(store.Write("reference", "prompt/text", "mine\n")).To(Succeed())
		Expect(store.Write("reference", "cancel/mid", "mine\n")).To(Succeed())
		Expect(store.List("reference")).To(Equal([]string{"cancel/mid", "only", "prompt/text"}))
		Expect(store.List("nobody")).To(BeEmpty())
	})

	It("leaves nothing but goldens behind", func() {
		Expect(store.Write("a", "x", "1")).To(Succeed())
		Expect(store.Write("a", "x", "2")).To(Succeed())
		entries, err := os.ReadDir(filepath.Join(store.Dir, "a"))
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(HaveLen(1))
	})

	DescribeTable("keeps to its own directory", func(agent, scenario string) {
		Expect(store.Write(agent, scenario, "x")).To(MatchError(ContainSubstring("cannot name a golden")))
		_, _, err := store.Read(agent, scenario)
		Expect(err).To(MatchError(ContainSubstring("cannot name a golden")))
	},
		Entry("up", "a", "../../x"), Entry("absolute", "a", "/x"), Entry("agent up", "..", "x"),
		Entry("agent with a slash", "a/b", "x"), Entry("backslash", "a", `..\x`), Entry("none", "", "x"))

	It("does not write without a directory", func() {
		Expect(golden.Store{}.Write("a", "x", "")).To(MatchError(ContainSubstring("no directory")))
	})

	It("has no goldens of other agents in the binary", func() {
		entries, err := fs.ReadDir(golden.Shipped(), ".")
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		Expect(names).To(Equal([]string{"reference", "reference-acp-v2", "reference-ag-ui"}))
	})
})

var _ = Describe("the goldens of this project", func() {
	It("are as they were rendered: no heading stands alone", func() {
		files := 0
		Expect(fs.WalkDir(os.DirFS("."), ".", func(name string, _ fs.DirEntry, err error) error {
			if path.Ext(name) != ".golden" {
				return err
			}
			files++
			text, err := os.ReadFile(name)
			Expect(string(text)).NotTo(MatchRegexp(`(?m)^== .*\n(== |\z)`), name)
			return err
		})).To(Succeed())
		Expect(files).To(BeNumerically(">", 192))
	})
})

var _ = Describe("a difference", func() {
	It("is empty for equal texts", func() { Expect(golden.Diff("a\n", "a\n")).To(BeEmpty()) })

	It("shows what is missing and what came instead, with a few lines around it", func() {
		want := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
		got := "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"
		Expect(golden.Diff(want, got)).To(Equal("-want +got\n@@ line 2 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"))
	})

	It("shows a missing line break", func() {
		Expect(golden.Diff("a\n", "a")).To(ContainSubstring(`no line break at the end`))
	})
})
