package browser

import (
	"os"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"
)

// module is the text of a module of the page, to be evaluated behind those that it imports.
func module(t *testing.T, name string) string {
	t.Helper()
	src, err := os.ReadFile("../../inspector/page/" + name + ".js")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^import [^;]*;\n|^export `).ReplaceAllString(string(src), "")
}

// Idle stretches of the time line are folded, whatever lasts as long as all else is not, and each place has its time.
func TestScale(t *testing.T) {
	p := at(t, "about:blank")
	p.do("a page", chromedp.Navigate("about:blank"))
	of := func(at, what string) any {
		return p.eval(`(() => {` + module(t, "scale") + `
			const at = ` + at + `, scale = new Scale({at, n: at.length, end: () => at.at(-1)});
			scale.grown();
			return ` + what + `;
		})()`)
	}
	const busy = `[0, 1000, 2000, 3000, 2003000, 2004000, 2005000]` // two seconds of nothing in the middle
	p.want("idle stretches", of(busy, "scale.folds.length"), 1.0)
	p.want("how long one was", of(busy, "scale.folds[0].long"), 2000000.0)
	p.want("what is left of it", of(busy, "scale.total() < 10000"), true)
	p.want("times of places", of(busy,
		"[0, 1500, 1000000, 2004500, 3000000].map(t => Math.round(scale.time(scale.x(t)))).join()"),
		"0,1500,1000000,2004500,3000000")
	p.want("entries from the middle on", of(busy, "scale.first(scale.x(1000000))"), 4.0)
	p.want("unfolded", of(busy, "(scale.folding = false, scale.total())"), 2005000.0)
	p.want("in causal order", of(busy, "(scale.causal = true, scale.total())"), 7.0)
	p.want("idle stretches of what is even", of(`[0, 1e6, 2e6, 3e6, 4e6, 5e6]`, "scale.folds.length"), 0.0)
}

// Each session has a lane where there are several, and a child says whose it is.
func TestLanes(t *testing.T) {
	p := at(t, "about:blank")
	p.do("a page", chromedp.Navigate("about:blank"))
	p.want("lanes", p.eval(`(() => {`+module(t, "spans")+module(t, "lanes")+`
		const names = ["", "agent", "notification", "say", "a", "b"], n = 3, session = [4, 5, 5],
			trace = {names, session, sessions: () => ["a", "b"], name: (column, i) => ({source: "agent", kind: `+
		`"notification", method: "say"})[column]};
		const called = lanes => lanes.rows().map(([k]) => lanes.name(k)).join();
		const lanes = new Lanes(trace);
		lanes.note(0);
		const one = called(lanes);
		lanes.note(1);
		lanes.parents.set("b", "a");
		const apart = called(lanes);
		lanes.folded = true;
		return one + " " + apart + " " + called(lanes) + " " + lanes.lists[7].n;
	})()`), "editor,agent editor,s1,s2 of s1 editor,s1 1")
}
