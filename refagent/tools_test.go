package refagent_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("tools", func() {
	var (
		m   *modelServer
		e   *editor
		dir string
	)
	// use makes the model call one tool and returns what it was told.
	use := func(caps object, name string, args object, serve ...func(frame) any) string {
		GinkgoHelper()
		m = newModelServer(reply(callTool("c1", name, args), finish("tool_calls")), answer("Done."))
		e = start(launch{model: m, caps: caps})
		if len(serve) > 0 {
			e.onRequest(serve[0])
		}
		s := e.newSession(dir)
		Expect(e.stopReason(e.prompt(s, "Go"))).To(Equal("end_turn"))
		told := m.messages(1)
		return told[len(told)-1]
	}
	put := func(name, content string) {
		Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	BeforeEach(func() { dir = GinkgoT().TempDir() })

	DescribeTable("have a kind that follows from the name",
		func(name, kind string) {
			use(nil, name, object{"path": "x", "to": "y", "command": "true", "pattern": "x", "thought": "x",
				"mode": "agentic", "url": "http://127.0.0.1:1/", "content": "", "old": "a", "new": "b"})
			Expect(e.update("tool_call").up("kind")).To(Equal(kind))
		},
		Entry(nil, "read_file", "read"), Entry(nil, "write_file", "edit"), Entry(nil, "edit_file", "edit"),
		Entry(nil, "delete_file", "delete"), Entry(nil, "move_file", "move"), Entry(nil, "search", "search"),
		Entry(nil, "run_shell", "execute"), Entry(nil, "think", "think"), Entry(nil, "fetch", "fetch"),
		Entry(nil, "switch_mode", "switch_mode"), Entry(nil, "mystery", "other"),
	)

	It("read a range from the disk", func() {
		put("x", "1\n2\n3\n4\n")
		Expect(use(nil, "read_file", object{"path": "x", "line": 2, "limit": 2})).To(Equal("tool: 2\n3\n"))
		Expect(e.update("tool_call").up("locations")).
			To(Equal([]any{object{"path": filepath.Join(dir, "x"), "line": 2.0}}))
	})

	It("read from the editor when it has files", func() {
		put("x", "disk")
		told := use(object{"fs": object{"readTextFile": true}}, "read_file", object{"path": "x"}, func(f frame) any {
			Expect(f.method()).To(Equal("fs/read_text_file"))
			Expect(f.at("params", "path")).To(Equal(filepath.Join(dir, "x")))
			return object{"content": "unsaved"}
		})
		Expect(told).To(Equal("tool: unsaved"))
	})

	It("fail, and only they, when the editor answers with an error", func() {
		told := use(object{"fs": object{"readTextFile": true}}, "read_file", object{"path": "x"},
			func(frame) any { return rpcFailure{-32002, "no such file"} })
		Expect(told).To(ContainSubstring("no such file"))
		Expect(e.story(0)).To(ContainElement("tool_call_update c1 failed"))
	})

	It("write through the editor, which may answer null", func() {
		var content any
		use(object{"fs": object{"writeTextFile": true}}, "write_file", object{"path": "x", "content": "hi"},
			func(f frame) any {
				if f.method() != "fs/write_text_file" {
					return e.choose("allow_once")(f)
				}
				content = f.at("params", "content")
				return object{}
			})
		Expect(content).To(Equal("hi"))
		Expect(filepath.Join(dir, "x")).NotTo(BeAnExistingFile())
	})

	It("edit one passage and show the whole change", func() {
		put("x", "a b c")
		use(nil, "edit_file", object{"path": "x", "old": "b", "new": "B"})
		Expect(os.ReadFile(filepath.Join(dir, "x"))).To(BeEquivalentTo("a B c"))
		_, f := e.await("completed", 0, func(f frame) bool { return f.up("status") == "completed" })
		Expect(f.up("content").([]any)[0]).To(Equal(object{
			"type": "diff", "path": filepath.Join(dir, "x"), "oldText": "a b c", "newText": "a B c"}))
	})

	DescribeTable("refuse what cannot be",
		func(name string, args object, why string) {
			put("x", "aa")
			Expect(os.Symlink("/etc", filepath.Join(dir, "link"))).To(Succeed())
			Expect(use(nil, name, args)).To(And(HavePrefix("tool: Error: "), ContainSubstring(why)))
			Expect(e.story(0)).To(ContainElement("tool_call_update c1 failed"))
		},
		Entry("outside", "read_file", object{"path": "/etc/hostname"}, "outside"),
		Entry("upwards", "write_file", object{"path": "../x", "content": ""}, "outside"),
		Entry("through a link", "read_file", object{"path": "link/hostname"}, ""),
		Entry("text that is not there", "edit_file", object{"path": "x", "old": "q", "new": ""}, "not in the file"),
		Entry("text that is there twice", "edit_file", object{"path": "x", "old": "a", "new": ""}, "2 times"),
		Entry("no such file", "read_file", object{"path": "nope"}, "nope"),
		Entry("no path", "read_file", object{}, "missing"),
		Entry("no such tool", "fly", object{}, "no tool"),
		Entry("a failing command", "run_shell", object{"command": "echo oops; exit 3"}, "exit status 3\noops"),
		Entry("no such mode", "switch_mode", object{"mode": "x"}, "no mode"),
	)

	It("delete and move files", func() {
		put("x", "1")
		use(nil, "move_file", object{"path": "x", "to": "y"})
		Expect(filepath.Join(dir, "y")).To(BeAnExistingFile())
		use(nil, "delete_file", object{"path": "y"})
		Expect(filepath.Join(dir, "y")).NotTo(BeAnExistingFile())
	})

	It("search in the order of names", func() {
		put("b.txt", "one\nneedle b\n")
		put("a.txt", "needle a\n")
		Expect(use(nil, "search", object{"pattern": "needle"})).To(Equal("tool: a.txt:1: needle a\nb.txt:2: needle b"))
	})

	It("run a command in the session's directory", func() {
		put("here", "")
		Expect(use(nil, "run_shell", object{"command": "ls; echo é"})).To(Equal("tool: here\né\n"))
	})

	It("run a command in a terminal of the editor, from create to release", func() {
		told := use(object{"terminal": true}, "run_shell", object{"command": "true"}, func(f frame) any {
			switch f.method() {
			case "terminal/create":
				Expect(f.at("params", "cwd")).To(Equal(dir))
				return object{"terminalId": "t1"}
			case "terminal/wait_for_exit":
				return object{"exitCode": 0, "signal": nil}
			case "terminal/output":
				return object{"output": "out", "truncated": false, "exitStatus": object{"exitCode": 0}}
			case "terminal/release":
				return object{}
			}
			return e.choose("allow_once")(f)
		})
		Expect(told).To(Equal("tool: out"))
		var order []string
		for _, f := range e.all() {
			if f.method() != "session/update" && f.method() != "" {
				order = append(order, f.method())
			}
		}
		Expect(order).To(
			Equal([]string{"session/request_permission", "terminal/create", "terminal/wait_for_exit", "terminal/output",
				"terminal/release"}),
		)
	})

	It("survive a terminal that cannot be created", func() {
		Expect(use(object{"terminal": true}, "run_shell", object{"command": "true"})).
			To(ContainSubstring("creating a terminal"))
	})

	It("fetch a page", func() {
		web := httptest.NewServer(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("page")) }),
		)
		DeferCleanup(web.Close)
		Expect(use(nil, "fetch", object{"url": web.URL})).To(Equal("tool: page"))
	})
})
