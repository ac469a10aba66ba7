package mockclient_test

import (
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/wire"
)

var _ = Describe("files", func() {
	var dir, outside string
	BeforeEach(func() {
		dir, outside = GinkgoT().TempDir(), GinkgoT().TempDir()
		Expect(os.WriteFile(dir+"/a.txt", []byte("one\r\ntwo\nthree"), 0o600)).To(Succeed())
		Expect(os.WriteFile(outside+"/secret", []byte("secret"), 0o600)).To(Succeed())
		Expect(os.Mkdir(dir+"/sub", 0o700)).To(Succeed())
	})
	// do lets the agent send one request, and returns the answer.
	do := func(o mockclient.Options, method, params string) (wire.Value, *mockclient.Editor) {
		GinkgoHelper()
		got := make(chan wire.Value, 1)
		e := edit(o, func(p *peer) {
			p.handshake()
			got <- p.ask(1, method, params).v
		})
		open(e, dir)
		var v wire.Value
		Eventually(got).Should(Receive(&v))
		return v, e
	}
	DescribeTable("are read by lines", func(params, want string) {
		v, _ := do(mockclient.Options{}, "fs/read_text_file",
			fmt.Sprintf(`{"sessionId":"s","path":"%s/a.txt"%s}`, dir, params))
		Expect(v.Path("result.content").Kind()).To(Equal(wire.String))
		Expect(v.Path("result.content").Str()).To(Equal(want))
	},
		Entry("whole", ``, "one\r\ntwo\nthree"),
		Entry("from the first", `,"line":1`, "one\r\ntwo\nthree"),
		Entry("from 0, as from the first", `,"line":0`, "one\r\ntwo\nthree"),
		Entry("from the second", `,"line":2`, "two\nthree"),
		Entry("one line", `,"line":2,"limit":1`, "two\n"),
		Entry("the first line with its carriage return", `,"limit":1`, "one\r\n"),
		Entry("more than there are", `,"line":3,"limit":9`, "three"),
		Entry("past the end", `,"line":9`, ""),
		Entry("no lines", `,"limit":0`, ""),
		Entry("null is absent", `,"line":null,"limit":null`, "one\r\ntwo\nthree"),
		Entry("malformed is absent", `,"line":"x","limit":-1`, "one\r\ntwo\nthree"),
	)
	DescribeTable("are refused", func(method, path, code string, noted bool) {
		path = strings.NewReplacer("$DIR", dir, "$OUT", outside).Replace(path)
		Expect(os.Symlink(outside, dir+"/link")).To(Succeed())
		Expect(os.Symlink(outside+"/secret", dir+"/filelink")).To(Succeed())
		Expect(os.Symlink("../"+outside[strings.LastIndex(outside, "/")+1:], dir+"/rellink")).To(Succeed())
		v, e := do(mockclient.Options{}, method, fmt.Sprintf(`{"sessionId":"s","path":%q,"content":"x"}`, path))
		Expect(v.Path("error.code").Text()).To(Equal(code), string(v.Raw()))
		Expect(os.ReadFile(outside + "/secret")).To(Equal([]byte("secret")))
		if noted {
			Expect(notes(e.Transcript())).
				To(ConsistOf(And(HaveField("Code", "path-refused"), HaveField("Refused", path))))
		}
	},
		Entry("outside", "fs/read_text_file", "$OUT/secret", "-32602", true),
		Entry("a path that leaves", "fs/read_text_file", "$DIR/../x", "-32602", true),
		Entry("through a link", "fs/read_text_file", "$DIR/link/secret", "-32602", true),
		Entry("a link to a file", "fs/read_text_file", "$DIR/filelink", "-32602", true),
		Entry("through a relative link", "fs/read_text_file", "$DIR/rellink/secret", "-32602", true),
		Entry("writing through a link", "fs/write_text_file", "$DIR/link/secret", "-32602", true),
		Entry("writing a link to a file", "fs/write_text_file", "$DIR/filelink", "-32602", true),
		Entry("writing a new file through a link", "fs/write_text_file", "$DIR/link/new", "-32602", true),
		Entry("relative", "fs/read_text_file", "a.txt", "-32602", false),
		Entry("missing", "fs/read_text_file", "$DIR/none", "-32002", false),
		Entry("a directory", "fs/read_text_file", "$DIR/sub", "-32603", false),
		Entry("writing a directory", "fs/write_text_file", "$DIR/sub", "-32603", false),
		Entry("the root itself", "fs/write_text_file", "$DIR", "-32603", false),
	)
	It("follow a link that stays inside", func() {
		Expect(os.Symlink(dir+"/a.txt", dir+"/sub/abs")).To(Succeed())
		v, _ := do(mockclient.Options{}, "fs/read_text_file",
			fmt.Sprintf(`{"sessionId":"s","path":"%s/sub/abs","limit":1}`, dir))
		Expect(v.Path("result.content").Str()).To(Equal("one\r\n"))
	})
	It("are written and created, with their directories", func() { // FS-006, FS-007
		v, _ := do(mockclient.Options{}, "fs/write_text_file",
			fmt.Sprintf(`{"sessionId":"s","path":"%s/new/x/y","content":"a\r\nb"}`, dir))
		Expect(string(v.Get("result").Raw())).To(Equal(`{}`))
		Expect(os.ReadFile(dir + "/new/x/y")).To(Equal([]byte("a\r\nb")))
		do(mockclient.Options{}, "fs/write_text_file",
			fmt.Sprintf(`{"sessionId":"s","path":"%s/a.txt","content":"s"}`, dir))
		Expect(os.ReadFile(dir + "/a.txt")).To(Equal([]byte("s")))
	})
	It("are bounded, whatever the agent makes of them", func() {
		Expect(os.WriteFile(dir+"/sparse", []byte("one\ntwo\n"), 0o600)).To(Succeed())
		Expect(os.Truncate(dir+"/sparse", 1<<40)).To(Succeed())
		read := func(params string) wire.Value {
			v, _ := do(mockclient.Options{}, "fs/read_text_file",
				fmt.Sprintf(`{"sessionId":"s","path":"%s/sparse"%s}`, dir, params))
			return v
		}
		Expect(read(`,"line":1,"limit":2`).Path("result.content").Str()).To(Equal("one\ntwo\n"))
		Expect(read(`,"line":2,"limit":5`).Path("error.message").Str()).
			To(MatchRegexp("the file is too large|it takes longer than 10s"))
		Expect(read(``).Path("error.message").Str()).To(ContainSubstring("the file is too large: 1099511627776 bytes"))
	})
	It("can be read in a directory that is created after the session was opened", func() {
		later := dir + "/later"
		got := make(chan wire.Value, 1)
		opened := make(chan struct{})
		e := edit(mockclient.Options{}, func(p *peer) {
			p.handshake()
			<-opened
			got <- p.ask(1, "fs/read_text_file", fmt.Sprintf(`{"sessionId":"s","path":"%s/x"}`, later)).v
		})
		open(e, later)
		Expect(os.Mkdir(later, 0o700)).To(Succeed())
		Expect(os.WriteFile(later+"/x", []byte("here"), 0o600)).To(Succeed())
		close(opened)
		var v wire.Value
		Eventually(got).Should(Receive(&v))
		Expect(v.Path("result.content").Str()).To(Equal("here"), string(v.Raw()))
	})
	It("are refused behind a link that is created in the place of a missing directory", func() {
		later := dir + "/later"
		got := make(chan wire.Value, 1)
		opened := make(chan struct{})
		e := edit(mockclient.Options{}, func(p *peer) {
			p.handshake()
			<-opened
			got <- p.ask(1, "fs/read_text_file", fmt.Sprintf(`{"sessionId":"s","path":"%s/secret"}`, later)).v
		})
		open(e, later)
		Expect(os.Symlink(outside, later)).To(Succeed())
		close(opened)
		var v wire.Value
		Eventually(got).Should(Receive(&v))
		Expect(v.Path("error.code").Text()).To(Equal("-32602"), string(v.Raw()))
	})
	It("may be missing and empty", func() {
		v, _ := do(mockclient.Options{Files: &mockclient.Files{MissingEmpty: true}}, "fs/read_text_file",
			fmt.Sprintf(`{"sessionId":"s","path":"%s/none"}`, dir))
		Expect(string(v.Path("result").Raw())).To(Equal(`{"content":""}`))
	})
	It("show unsaved buffers until the agent writes", func() { // FS-008
		files := &mockclient.Files{}
		files.Open(dir+"/a.txt", "unsaved\nsecond")
		v, _ := do(mockclient.Options{Files: files}, "fs/read_text_file",
			fmt.Sprintf(`{"sessionId":"s","path":"%s/sub/../a.txt","line":2}`, dir))
		Expect(v.Path("result.content").Str()).To(Equal("second"))
		do(mockclient.Options{Files: files}, "fs/write_text_file",
			fmt.Sprintf(`{"sessionId":"s","path":"%s/a.txt","content":"new"}`, dir))
		v, _ = do(mockclient.Options{Files: files}, "fs/read_text_file",
			fmt.Sprintf(`{"sessionId":"s","path":"%s/a.txt"}`, dir))
		Expect(v.Path("result.content").Str()).To(Equal("new"))
	})
	It("that are not UTF-8 are an error, or replaced on demand", func() {
		Expect(os.WriteFile(dir+"/bin", []byte("a\xffb"), 0o600)).To(Succeed())
		params := fmt.Sprintf(`{"sessionId":"s","path":"%s/bin"}`, dir)
		v, _ := do(mockclient.Options{}, "fs/read_text_file", params)
		Expect(v.Path("error.message").Str()).To(ContainSubstring("not UTF-8"))
		v, _ = do(mockclient.Options{Files: &mockclient.Files{ReplaceInvalid: true}}, "fs/read_text_file", params)
		Expect(v.Path("result.content").Str()).To(Equal("a\uFFFDb"))
	})
	It("fail on demand", func() {
		files := &mockclient.Files{Faults: []mockclient.FileFault{{Path: "*.txt", Write: true,
			Error: mockclient.RPCError{Code: -32603, Message: "read-only file system"}}}}
		v, _ := do(mockclient.Options{Files: files}, "fs/write_text_file",
			fmt.Sprintf(`{"sessionId":"s","path":"%s/a.txt","content":""}`, dir))
		Expect(v.Path("error.message").Str()).To(Equal("read-only file system"))
		v, _ = do(mockclient.Options{Files: files}, "fs/read_text_file",
			fmt.Sprintf(`{"sessionId":"s","path":"%s/a.txt"}`, dir))
		Expect(v.Path("result").Exists()).To(BeTrue())
	})
	It("of a session that is not open are refused", func() {
		v, e := do(mockclient.Options{}, "fs/read_text_file",
			fmt.Sprintf(`{"sessionId":"other","path":"%s/a.txt"}`, dir))
		Expect(v.Path("error.code").Text()).To(Equal("-32602"))
		Expect(codes(e.Transcript())).To(Equal([]string{"unknown-session"}))
	})
	reads := map[string]any{"readTextFile": true}
	family, alone := mockclient.Capabilities{"fs": reads, "subagents": map[string]any{}},
		mockclient.Capabilities{"fs": reads}
	DescribeTable("of a child are those of the session that announced it",
		func(caps mockclient.Capabilities, of, path, want string) {
			got := make(chan wire.Value, 1)
			open(edit(mockclient.Options{Capabilities: caps}, func(p *peer) {
				p.handshake()
				p.update(of, `{"sessionUpdate":"subagent_update","sessionId":"k","cwd":"/",`+
					`"state":{"state":"running"}}`)
				got <- p.ask(1, "fs/read_text_file",
					fmt.Sprintf(`{"sessionId":"k","path":%q}`, strings.ReplaceAll(path, "$DIR", dir))).v
			}), dir)
			var v wire.Value
			Eventually(got).Should(Receive(&v))
			Expect(v.Path("result.content").Str() + v.Path("error.message").Str()).To(HavePrefix(want))
		},
		Entry(nil, family, "s", "$DIR/a.txt", "one"),
		Entry(nil, family, "s", "/etc/hostname", "the path "),
		Entry(nil, family, "other", "$DIR/a.txt", "unknown session"),
		Entry(nil, alone, "s", "$DIR/a.txt", "unknown session"),
	)
	It("of any size are read whole", Label("large"), func() {
		big := strings.Repeat("0123456789abcde\n", 2<<20)
		Expect(os.WriteFile(dir+"/big", []byte(big), 0o600)).To(Succeed())
		v, _ := do(mockclient.Options{}, "fs/read_text_file", fmt.Sprintf(`{"sessionId":"s","path":"%s/big"}`, dir))
		Expect(v.Path("result.content").Str() == big).To(BeTrue())
		v, _ = do(mockclient.Options{}, "fs/read_text_file",
			fmt.Sprintf(`{"sessionId":"s","path":"%s/big","line":%d,"limit":2}`, dir, 2<<20-1))
		Expect(v.Path("result.content").Str()).To(Equal("0123456789abcde\n0123456789abcde\n"))
	})
})
