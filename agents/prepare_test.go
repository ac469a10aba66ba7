//go:build unix

package agents_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/agents"
)

var _ = Describe("a set-up step", func() {
	load := func(step, rest string) *agents.Profile {
		GinkgoHelper()
		p, err := agents.Load(write("name: a\ncommand: [sh, -c, 'exit 0']\nenv: {URL: $LLM/v1, MARK: $HOME/mark}\n" +
			"home: {given: 'from $LLM'}\nsetup: [sh, -c, \"" + step + "\"]\n" + rest))
		Expect(err).NotTo(HaveOccurred())
		return p
	}
	at := agents.Sandbox{HostEnv: []string{"PATH=" + os.Getenv("PATH")}, Cwd: "/"}

	It("has the environment and HOME of the agent, which gets what it left, with its own model and folders",
		func(ctx context.Context) {
			_, err := load(`cat given > $$MARK`, "").
				Prepare(ctx, agents.Preparation{Sandbox: at})
			Expect(err).To(MatchError(ContainSubstring("given: No such file")), "it starts in the workspace")
			p, err := load(`cat $HOME/given > $$MARK; echo ' '$$URL $HOME $$PWD >> $$MARK; printf 'a\\000'$HOME > `+
				`$HOME/binary; echo changed > $HOME/given`, "").
				Prepare(ctx, agents.Preparation{Sandbox: at})
			Expect(err).NotTo(HaveOccurred())
			for _, llm := range []string{"http://one", "http://two"} {
				l, err := p.Launch(agents.Sandbox{HostEnv: at.HostEnv, LLM: llm, Work: "/w", Home: "/h", Temp: "/t"})
				Expect(err).NotTo(HaveOccurred())
				Expect(string(l.Files["mark"])).To(Equal("from " + llm + " " + llm + "/v1 /h /w\n"))
				Expect(string(l.Files["given"])).To(Equal("changed\n"))
				Expect(string(l.Files["binary"])).
					To(MatchRegexp(`^a\x00/.*/acp-test-[^/]*/home$`), "no text is changed")
			}
		})

	It("ends with all that it has started, and leaves nothing else", func(ctx context.Context) {
		tmp := GinkgoT().TempDir()
		place := at
		place.Temp = tmp
		pid := filepath.Join(GinkgoT().TempDir(), "pid")
		_, err := load(`sleep 600 & echo $$! > `+pid, "").Prepare(ctx, agents.Preparation{Sandbox: place})
		Expect(err).NotTo(HaveOccurred())
		id, err := os.ReadFile(pid)
		Expect(err).NotTo(HaveOccurred())
		Expect(filepath.Join("/proc", strings.TrimSpace(string(id)), "cwd")).NotTo(BeADirectory())
		Expect(os.ReadDir(tmp)).To(BeEmpty())
	})

	DescribeTable("that fails is one message", func(ctx context.Context, step, rest, want string) {
		_, err := load(step, rest).Prepare(ctx, agents.Preparation{Sandbox: at})
		Expect(err).To(MatchError(MatchRegexp(want)))
	},
		Entry("by its status", "echo no key >&2; exit 3", "",
			`^the set-up step of profile a, sh -c echo .*: it ended with status 3; it wrote:\n  no key$`),
		Entry("by a signal", "kill -9 $$$$", "", "it was ended by SIGKILL"),
		Entry("because it does not end", "sleep 600", "timeouts: {setup: 1ms}\n",
			"it did not end within 1ms; raise timeouts.setup of the profile"),
		Entry("because it leaves too much", "head -c 67108865 /dev/zero > $HOME/a", "",
			"what it left below HOME: .*(more than|larger|bytes)"),
	)

	It("that is none leaves the profile as it is", func(ctx context.Context) {
		p := agents.AdHoc([]string{"x"})
		Expect(p.Prepare(ctx, agents.Preparation{})).To(BeIdenticalTo(p))
	})

	It("ends when it is interrupted", func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := load("sleep 600", "").Prepare(ctx, agents.Preparation{Sandbox: at})
		Expect(err).To(MatchError(context.Canceled))
	})
})
