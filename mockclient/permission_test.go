package mockclient_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// options renders permission options, each kind being also its id.
func options(kinds ...string) string {
	var list []string
	for _, k := range kinds {
		list = append(list, fmt.Sprintf(`{"optionId":"id-%s","name":"n","kind":%q}`, k, k))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// asked lets an agent ask for permission with the given params once for each,
// and returns the answers as "selected id", "cancelled" or "error code".
func asked(p *mockclient.Policy, params ...string) ([]string, *mockclient.Editor) {
	GinkgoHelper()
	answers := make(chan []string, 1)
	e := edit(mockclient.Options{Policy: p}, func(p *peer) {
		p.handshake()
		var got []string
		for i, params := range params {
			got = append(got, outcome(p.ask(i+1, "session/request_permission", params)))
		}
		answers <- got
	})
	open(e, GinkgoT().TempDir())
	var got []string
	Eventually(answers).Should(Receive(&got))
	return got, e
}

func outcome(m msg) string {
	if code := m.v.Path("error.code"); code.Exists() {
		return "error " + code.Text()
	}
	o := m.v.Path("result.outcome")
	return strings.TrimSpace(o.Get("outcome").Text() + " " + o.Get("optionId").Text())
}

func request(kind, title, options string) string {
	return fmt.Sprintf(`{"sessionId":"s","toolCall":{"toolCallId":"c","kind":%q,"title":%q},"options":%s}`, kind, title,
		options)
}

var _ = Describe("the policy", func() {
	all := options("allow_once", "allow_always", "reject_once", "reject_always")
	DescribeTable("chooses and notes", func(answer *mockclient.Answer, offered, want string, notes ...string) {
		policy := &mockclient.Policy{}
		if answer != nil {
			policy = mockclient.Always(*answer)
		}
		got, e := asked(policy, request("edit", "t", offered))
		Expect(got).To(Equal([]string{want}))
		Expect(codes(e.Transcript())).To(ConsistOf(notes))
	},
		Entry("rejects by default", nil, all, "selected id-reject_once", "permission-default"),
		Entry("rejects for good if it must", nil, options("allow_once", "reject_always"), "selected id-reject_always",
			"permission-default"),
		Entry("cancels if there is no way to reject", nil, options("allow_once"), "cancelled", "permission-default"),
		Entry("cancels without options", nil, `[]`, "cancelled", "permission-default"),
		Entry("cancels with malformed options", nil, `"x"`, "cancelled", "permission-default"),
		Entry("chooses a kind", &mockclient.Answer{Kind: "allow_once"}, all, "selected id-allow_once"),
		Entry("lets allow_always stand in", &mockclient.Answer{Kind: "allow_once"},
			options("reject_once", "allow_always"), "selected id-allow_always", "permission-fallback"),
		Entry("lets reject_always stand in", &mockclient.Answer{Kind: "reject_once"}, options("reject_always"),
			"selected id-reject_always", "permission-fallback"),
		Entry("lets nothing weaker stand in", &mockclient.Answer{Kind: "allow_always"},
			options("allow_once", "reject_once"), "cancelled", "permission-not-offered"),
		Entry("never allows where it should reject", &mockclient.Answer{Kind: "reject_once"}, options("allow_once"),
			"cancelled", "permission-not-offered"),
		Entry("takes an option by id", &mockclient.Answer{Option: "id-allow_always"}, all, "selected id-allow_always"),
		Entry("takes an option that is not offered", &mockclient.Answer{Option: "bogus"}, all, "selected bogus",
			"permission-unknown-option"),
		Entry("cancels", &mockclient.Answer{Cancelled: true}, all, "cancelled"),
		Entry("fails", &mockclient.Answer{Error: &mockclient.RPCError{Code: -32603, Message: "x"}}, all,
			"error -32603"),
		Entry("waits", &mockclient.Answer{Kind: "allow_once", Delay: 20 * time.Millisecond}, all,
			"selected id-allow_once"),
	)
	It("says which verdict a missing option leaves", func() {
		_, e := asked(mockclient.Allow(), request("edit", "t", options("reject_once")))
		Expect(notes(e.Transcript())).
			To(ConsistOf(And(HaveField("Inconclusive", true), HaveField("Wanted", "allow_once"),
				HaveField("Request", BeNumerically(">", 0)))))
	})
	It("takes the first rule that matches, by kind, title, offer and number", func() {
		p := &mockclient.Policy{Rules: []mockclient.Rule{
			{Kind: "execute", Nth: 2, Answer: mockclient.Answer{Option: "second"}},
			{Kind: "execute", Answer: mockclient.Answer{Option: "run"}},
			{Title: "/^Delete .*txt$/", Answer: mockclient.Answer{Option: "delete"}},
			{Title: "Write */main.?o", Answer: mockclient.Answer{Option: "write"}},
			{Offers: "allow_always", After: 1, Answer: mockclient.Answer{Option: "late"}},
		}}
		got, _ := asked(p,
			request("execute", "ls", all), request("execute", "ls", all), request("execute", "ls", all),
			request("edit", "Delete a.txt", all), request("edit", "Write a/b/main.go", all), request("edit", "x", all))
		Expect(got).To(Equal([]string{"selected run", "selected second", "selected run", "selected delete",
			"selected write", "selected late"}))
	})
	It("takes answers from a list", func() {
		got, _ := asked(mockclient.Scripted(mockclient.Answer{Kind: "allow_once"}, mockclient.Answer{Cancelled: true}),
			request("edit", "", all), request("edit", "", all), request("edit", "", all))
		Expect(got).To(Equal([]string{"selected id-allow_once", "cancelled", "selected id-reject_once"}))
	})
	It("remembers always, for a kind of tool, when told to", func() {
		p := &mockclient.Policy{Remember: mockclient.RememberTool,
			Rules: []mockclient.Rule{{Nth: 1, Answer: mockclient.Answer{Kind: "allow_always"}}}}
		got, e := asked(p, request("edit", "", all), request("edit", "", all), request("execute", "", all))
		Expect(got).To(Equal([]string{"selected id-allow_always", "selected id-allow_always",
			"selected id-reject_once"}))
		Expect(codes(e.Transcript())).To(Equal([]string{"permission-remembered", "permission-default"}))
	})
	It("remembers always for the whole session when told to, also under a later policy", func() {
		one := []mockclient.Rule{{Nth: 1, Answer: mockclient.Answer{Kind: "reject_always"}}}
		p := &mockclient.Policy{Remember: mockclient.RememberSession, Rules: one}
		got, e := asked(p, request("edit", "", all), request("execute", "", all))
		Expect(got).To(Equal([]string{"selected id-reject_always", "selected id-reject_always"}))
		later := &mockclient.Policy{Remember: mockclient.RememberSession,
			Rules: []mockclient.Rule{{Answer: mockclient.Answer{Kind: "allow_once"}}}}
		e.SetPolicy(later)
		chosen, _ := later.Decide("s", "fetch", "", [][2]string{{"a", "allow_once"}, {"b", "reject_always"}})
		Expect(chosen).To(Equal("b"))
		e.SetPolicy(mockclient.Allow())
		e.SetPolicy(later)
		chosen, _ = later.Decide("another", "fetch", "", [][2]string{{"a", "allow_once"}, {"b", "reject_always"}})
		Expect(chosen).To(Equal("a"))
	})
	It("knows kind and title of a call that was announced before", func() {
		p := &mockclient.Policy{Rules: []mockclient.Rule{{Kind: "delete", Title: "Remove*",
			Answer: mockclient.Answer{Option: "known"}}}}
		got := make(chan string, 1)
		e := edit(mockclient.Options{Policy: p}, func(p *peer) {
			p.handshake()
			p.update("s", `{"sessionUpdate":"tool_call","toolCallId":"c1","title":"x","kind":"delete"}`)
			p.update("s", `{"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"Remove it"}`)
			got <- outcome(p.ask(1, "session/request_permission", permissionParams))
		})
		open(e, GinkgoT().TempDir())
		Eventually(got).Should(Receive(Equal("selected known")))
	})
	It("knows the beginning and the end of a call that is too large to remember", func() {
		for _, about := range []string{"first", "last"} {
			p := &mockclient.Policy{Rules: []mockclient.Rule{{About: about, Answer: mockclient.Answer{Option: about}}}}
			got := make(chan string, 1)
			e := edit(mockclient.Options{Policy: p}, func(p *peer) {
				p.handshake()
				p.update("s", `{"sessionUpdate":"tool_call","toolCallId":"c1","title":"x","rawInput":["first","`+
					strings.Repeat("x", 200_000)+`","last"]}`)
				got <- outcome(p.ask(1, "session/request_permission", permissionParams))
			})
			open(e, GinkgoT().TempDir())
			Eventually(got).Should(Receive(Equal("selected " + about)))
		}
	})
	It("answers twice, on purpose", func() {
		p := mockclient.Always(mockclient.Answer{Kind: "allow_once", Twice: true})
		second := make(chan string, 1)
		e := edit(mockclient.Options{Policy: p}, func(p *peer) {
			p.handshake()
			p.ask(1, "session/request_permission", permissionParams)
			second <- outcome(p.until("", "1"))
		})
		open(e, GinkgoT().TempDir())
		Eventually(second).Should(Receive(Equal("selected yes")))
	})
	It("reads the words of scenarios", func() {
		for _, word := range []string{"allow_once", "allow_always", "reject_once", "reject_always", "cancelled", "hold",
			"never", "error", "error:-32000", "option:x"} {
			_, err := mockclient.ParseAnswer(word)
			Expect(err).NotTo(HaveOccurred())
		}
		for _, word := range []string{"", "alow", "option:", "error:x"} {
			_, err := mockclient.ParseAnswer(word)
			Expect(err).To(HaveOccurred())
		}
		Expect(mockclient.Rule{Title: "/(/"}.Check()).To(MatchError(ContainSubstring("title")))
		Expect(mockclient.Rule{Title: "("}.Check()).To(Succeed())
	})
})

var _ = Describe("a cancel", func() {
	// running starts a turn in which the agent sends what comes first, then asks
	// for permission, and returns the answers as they come.
	running := func(o mockclient.Options, first ...string) (*mockclient.Session, *mockclient.Turn, chan string) {
		GinkgoHelper()
		answers := make(chan string, 10)
		e := edit(o, func(p *peer) {
			p.handshake()
			prompt := p.until("session/prompt", "")
			for _, frame := range first {
				p.send("%s", frame)
			}
			p.send(`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":%s}`, permissionParams)
			for {
				m, ok := p.read()
				switch {
				case !ok:
					return
				case m.method == "session/cancel":
					answers <- "cancel"
				case m.method == "late":
					p.send(`{"jsonrpc":"2.0","id":2,"method":"session/request_permission","params":%s}`,
						permissionParams)
				case m.method == "end":
					p.reply(prompt, `{"stopReason":"cancelled"}`)
					prompt = p.until("session/prompt", "")
					p.send(`{"jsonrpc":"2.0","id":3,"method":"session/request_permission","params":%s}`,
						permissionParams)
				case m.method == "":
					answers <- string(m.id) + " " + outcome(m)
				}
			}
		})
		s := open(e, GinkgoT().TempDir())
		turn := s.Prompt(within(), mockclient.Text("go"))
		await(e.Transcript(), mockclient.PermissionRequested())
		return s, turn, answers
	}
	next := func(answers chan string) string {
		GinkgoHelper()
		var got string
		Eventually(answers).Should(Receive(&got))
		return got
	}
	notify := func(s *mockclient.Session, method string) {
		GinkgoHelper()
		_, err := s.Editor().Notify(method, nil)
		Expect(err).NotTo(HaveOccurred())
	}
	hold := mockclient.Answer{Hold: true}

	It("answers what is open, and what comes before the turn ends, and nothing later", func() { // CANCEL-006, PERM-011
		s, turn, answers := running(mockclient.Options{Policy: &mockclient.Policy{Rules: []mockclient.Rule{{Nth: 1,
			Answer: hold}, {Answer: mockclient.Answer{Kind: "allow_once"}}}}})
		_, err := s.Cancel()
		Expect(err).NotTo(HaveOccurred())
		Expect(next(answers)).To(Equal("cancel"))
		Expect(next(answers)).To(Equal("1 cancelled"))
		notify(s, "late")
		Expect(next(answers)).To(Equal("2 cancelled"))
		notify(s, "end")
		Expect(turn.Wait(within())).To(Equal("cancelled"))
		s.Prompt(within(), mockclient.Text("again"))
		Expect(next(answers)).To(Equal("3 selected yes"))
		Expect(s.Editor().Held()).To(BeEmpty())
	})
	It("is a close too, for what is asked or looked at after it", func() {
		s, _, answers := running(mockclient.Options{Policy: mockclient.Always(hold)})
		_, err := s.Editor().Send([]byte(`{"jsonrpc":"2.0","id":90,"method":"session/close",` +
			`"params":{"sessionId":"s"}}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(next(answers)).To(Equal("1 cancelled"))
		notify(s, "late")
		Expect(next(answers)).To(Equal("2 cancelled"))
	})
	It("answers a delayed request at once, and only once", func() {
		s, _, answers := running(mockclient.Options{Policy: mockclient.Always(mockclient.Answer{Kind: "allow_once",
			Delay: time.Hour})})
		_, err := s.Cancel()
		Expect(err).NotTo(HaveOccurred())
		Expect(next(answers)).To(Equal("cancel"))
		Expect(next(answers)).To(Equal("1 cancelled"))
	})
	It("also works as a raw line and as a generic notification", func() {
		s, _, answers := running(mockclient.Options{Policy: mockclient.Always(hold)})
		_, err := s.Editor().Send([]byte(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(next(answers)).To(Equal("cancel"))
		Expect(next(answers)).To(Equal("1 cancelled"))
	})
	It("leaves a request alone that is never answered", func() {
		s, turn, answers := running(mockclient.Options{Policy: mockclient.Always(mockclient.Answer{Never: true})})
		_, err := s.Cancel()
		Expect(err).NotTo(HaveOccurred())
		Expect(next(answers)).To(Equal("cancel"))
		notify(s, "end")
		Expect(turn.Wait(within())).To(Equal("cancelled"))
		Expect(answers).To(BeEmpty())
		Expect(s.Editor().Held()).To(HaveLen(1))
	})
	It("leaves a request alone whose answer comes late on purpose", func() {
		s, _, answers := running(mockclient.Options{Policy: mockclient.Always(mockclient.Answer{Hold: true,
			AfterCancel: true})})
		_, err := s.Cancel()
		Expect(err).NotTo(HaveOccurred())
		Expect(next(answers)).To(Equal("cancel"))
		held := s.Editor().Held()
		Expect(held).To(HaveLen(1))
		_, err = s.Editor().AnswerPermission(held[0].Seq, mockclient.Answer{Kind: "allow_once"})
		Expect(err).NotTo(HaveOccurred())
		Expect(next(answers)).To(Equal("1 selected yes"))
		_, err = s.Editor().AnswerPermission(held[0].Seq, mockclient.Answer{Cancelled: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(next(answers)).To(Equal("1 cancelled"), "a second answer, on purpose")
	})
	It("leaves a request alone that was answered before its turn to be handled came", func() {
		busy := make(chan struct{})
		s, turn, answers := running(mockclient.Options{
			Policy: mockclient.Always(hold),
			Handlers: map[string]func(*mockclient.Request){
				"slow": func(r *mockclient.Request) { <-busy; r.Reply(nil) },
			},
		}, `{"jsonrpc":"2.0","id":8,"method":"slow"}`)
		e := s.Editor()
		asked := await(e.Transcript(), mockclient.PermissionRequested())
		Expect(e.Held()).To(HaveLen(2))
		_, err := e.AnswerPermission(asked.Seq, mockclient.Answer{Kind: "allow_once"})
		Expect(err).NotTo(HaveOccurred())
		Expect(next(answers)).To(Equal("1 selected yes"))
		Expect(e.Held()).To(HaveLen(1))
		close(busy)
		Expect(next(answers)).To(HavePrefix("8 "))
		_, err = s.Cancel()
		Expect(err).NotTo(HaveOccurred())
		Expect(next(answers)).To(Equal("cancel"))
		notify(s, "end")
		Expect(turn.Wait(within())).To(Equal("cancelled"))
		Expect(e.Held()).To(BeEmpty())
		Expect(answers).To(BeEmpty())
	})
	It("is written before the answers it causes, also when they are joined", func() {
		s, _, answers := running(mockclient.Options{Policy: mockclient.Always(hold)})
		a := s.Editor().Agent()
		Expect(a.WriteShape(within(), mockclient.Shape{Coalesce: true})).To(Succeed())
		_, err := s.Cancel()
		Expect(err).NotTo(HaveOccurred())
		Expect(a.WriteShape(within(), mockclient.Shape{})).To(Succeed())
		Expect(next(answers)).To(Equal("cancel"))
		Expect(next(answers)).To(Equal("1 cancelled"))
	})
	It("never lets a choice follow it", func() {
		for range 200 {
			s, _, answers := running(mockclient.Options{Policy: mockclient.Allow()})
			_, err := s.Cancel() // races with the answer
			Expect(err).NotTo(HaveOccurred())
			if first := next(answers); first == "cancel" {
				Expect(next(answers)).To(Equal("1 cancelled"))
			}
		}
	})
	It("of one session leaves the others alone", func() {
		answers := make(chan string, 2)
		e := edit(mockclient.Options{Policy: mockclient.Always(hold)}, func(p *peer) {
			p.handshake()
			p.until("session/prompt", "")
			p.send(`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":%s}`, permissionParams)
			answers <- outcome(p.until("", "1"))
		})
		s := open(e, GinkgoT().TempDir())
		s.Prompt(within(), mockclient.Text("go"))
		await(e.Transcript(), mockclient.PermissionRequested())
		_, err := e.Session("other").Cancel()
		Expect(err).NotTo(HaveOccurred())
		Consistently(answers).WithTimeout(30 * time.Millisecond).ShouldNot(Receive())
		_, err = e.Answer(e.Held()[0].Seq, mockclient.Selected("no"), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(next(answers)).To(Equal("selected no"))
	})
})

var _ = Describe("what counts requests", func() {
	It("counts also one that was answered before its turn to be handled came", func() {
		busy, answers := make(chan struct{}), make(chan string, 2)
		e := edit(mockclient.Options{
			Policy: &mockclient.Policy{Rules: []mockclient.Rule{{Nth: 2,
				Answer: mockclient.Answer{Kind: "allow_once"}}}},
			Handlers: map[string]func(*mockclient.Request){
				"slow": func(r *mockclient.Request) { <-busy; r.Reply(nil) },
			},
		}, func(p *peer) {
			p.handshake()
			p.send(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
			p.send(`{"jsonrpc":"2.0","id":2,"method":"session/request_permission","params":%s}`, permissionParams)
			p.send(`{"jsonrpc":"2.0","id":3,"method":"held"}`)
			p.until("", "1")
			answers <- outcome(p.ask(4, "session/request_permission", permissionParams))
			answers <- outcome(p.ask(5, "held", `{}`))
		})
		var taken atomic.Bool
		e.HoldIf("held", func(wire.Value) bool { return taken.CompareAndSwap(false, true) }) // the first
		open(e, GinkgoT().TempDir())
		asked := await(e.Transcript(), mockclient.PermissionRequested())
		held := await(e.Transcript(), mockclient.Requested("held"))
		_, err := e.AnswerPermission(asked.Seq, mockclient.Answer{Cancelled: true})
		Expect(err).NotTo(HaveOccurred())
		_, err = e.Answer(held.Seq, "early", nil)
		Expect(err).NotTo(HaveOccurred())
		close(busy)
		Eventually(answers).Should(Receive(Equal("selected yes")))
		Eventually(answers).Should(Receive(Equal("error -32601")))
	})
})

var _ = Describe("requests that the editor refuses", func() {
	It("have an error, until it refuses them no more", func() {
		got := make(chan string, 3)
		again := make(chan struct{})
		e := edit(mockclient.Options{
			Handlers: map[string]func(*mockclient.Request){"odd": func(r *mockclient.Request) { r.Reply(nil) }},
		},
			func(p *peer) {
				p.handshake()
				got <- outcome(p.ask(1, "odd", `{}`))
				<-again
				got <- outcome(p.ask(2, "odd", `{}`))
			})
		e.Refuse("odd", true)
		open(e, GinkgoT().TempDir())
		Eventually(got).Should(Receive(Equal("error -32603")))
		e.Refuse("odd", false)
		close(again)
		Eventually(got).Should(Receive(Not(HavePrefix("error"))))
	})
})

var _ = Describe("$/cancel_request of the agent", func() {
	It("ends an open request with -32800", func() { // RCANCEL-009
		for _, ignore := range []bool{false, true} {
			got := make(chan string, 1)
			e := edit(mockclient.Options{Policy: mockclient.Always(mockclient.Answer{Hold: true}),
				IgnoreCancelRequest: ignore}, func(p *peer) {
				p.handshake()
				p.send(`{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":%s}`, permissionParams)
				p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"other"}}`)
				p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"q"}}`)
				p.ask(5, "barrier", `{}`)
				p.send(`{"jsonrpc":"2.0","method":"end"}`)
				got <- outcome(p.until("", `"q"`))
			})
			open(e, GinkgoT().TempDir())
			await(e.Transcript(), named("end"))
			if ignore {
				Expect(e.Held()).To(HaveLen(1))
				continue
			}
			Expect(e.Held()).To(BeEmpty())
		}
	})
	It("is sent for a request of ours", func() {
		e := edit(mockclient.Options{IDs: mockclient.StringIDs("r")}, func(p *peer) {
			m := p.until("slow", "")
			c := p.until("$/cancel_request", "")
			if string(c.v.Path("params.requestId").Raw()) == string(m.id) {
				p.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32800,"message":"cancelled"}}`, m.id)
			}
		})
		c := e.Call("slow", nil)
		_, err := c.Cancel()
		Expect(err).NotTo(HaveOccurred())
		_, err = c.Wait(within())
		Expect(err).To(MatchError(ContainSubstring("-32800")))
	})
})

var _ = Describe("a change of the policy", func() {
	It("does not reach a request that the transcript shows already", func() {
		hold, err := mockclient.ParseAnswer("hold")
		Expect(err).NotTo(HaveOccurred())
		asks := make(chan struct{})
		e := edit(mockclient.Options{Policy: mockclient.Always(hold)}, func(p *peer) {
			p.handshake()
			<-asks
			p.ask(1, "session/request_permission", request("edit", "t", options("allow_once")))
		})
		open(e, GinkgoT().TempDir())
		changed := make(chan struct{})
		e.Transcript().Observe(func(f transcript.Entry) {
			if f.Method != "session/request_permission" || f.Source != transcript.Agent {
				return
			}
			go func() {
				defer close(changed)
				e.Settle(context.Background())
				e.SetPolicy(mockclient.Always(mockclient.Answer{Kind: "allow_once"}))
			}()
			time.Sleep(20 * time.Millisecond) // an editor that did not wait would change its policy meanwhile
		})
		close(asks)
		Eventually(changed).Should(BeClosed())
		Expect(e.Held()).To(HaveLen(1))
	})
})
