//go:build linux

package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// What ci/bench/run measures of the page: each benchmark reports figures of its own.

// frames has something done in each frame of the display and says how many there were a
// second, and how long the longest took.
func (p *page) frames(step string) (rate, longest float64) {
	p.t.Helper()
	const script = `new Promise(done => {
		const step = %s, at = [];
		const tick = t => { at.push(t); step(at.length); at.length < 180 ? requestAnimationFrame(tick) :
			done({rate: 1000 * (at.length - 1) / (at.at(-1) - at[0]), longest: Math.max(...at.slice(1).map((t, i) => ` +
		`t - at[i]))}) };
		requestAnimationFrame(tick);
	})`
	var got struct{ Rate, Longest float64 }
	p.do("moving", chromedp.Evaluate(fmt.Sprintf(script, step), &got, awaited))
	return got.Rate, got.Longest
}

// The wheel over the time line goes in and out again; in the table it goes down.
const (
	zooming = `n => { const c = document.querySelector(".timeline canvas"), box = c.getBoundingClientRect();
		c.dispatchEvent(new WheelEvent("wheel", {deltaY: n % 90 < 45 ? -100 : 100, clientX: box.left + box.width * ` +
		`.6, clientY: box.top + 40, cancelable: true})) }`
	scrolling = `n => { const e = document.querySelector(".t-scroll");
		if (e.dispatchEvent(new WheelEvent("wheel", {deltaY: 400, cancelable: true}))) e.scrollTop += 400 }`
)

// memory is what the process of the page has for itself, in MB.
func (p *page) memory() float64 {
	p.t.Helper()
	browser := strconv.Itoa(chromedp.FromContext(p).Browser.Process().Pid)
	most := 0.0
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte("--type=renderer")) || !descends(filepath.Dir(file), browser) {
			continue // it has ended, or is another one
		}
		rolled, err := os.ReadFile(filepath.Join(filepath.Dir(file), "smaps_rollup"))
		if err != nil {
			continue
		}
		for text := range strings.Lines(string(rolled)) {
			if f := strings.Fields(text); f[0] == "Pss:" {
				kb, _ := strconv.ParseFloat(f[1], 64)
				most = max(most, kb/1000)
			}
		}
	}
	return most
}

// descends reports whether a process, by its folder in /proc, was started by another one.
func descends(dir, ancestor string) bool {
	for range 8 {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			return false
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(rest)
		if f[1] == ancestor {
			return true
		}
		dir = filepath.Join("/proc", f[1])
	}
	return false
}

// painted is when the browser first showed something, in milliseconds.
func (p *page) painted() float64 {
	p.t.Helper()
	p.until(`performance.getEntriesByName("first-contentful-paint").length > 0`)
	return p.eval(`performance.getEntriesByName("first-contentful-paint")[0].startTime`).(float64)
}

// view measures a transcript in the page at an address.
func view(b *testing.B, address, hash string, entries string) {
	p := at(b, address)
	p.do("starting the browser", chromedp.EmulateViewport(1280, 900), chromedp.Navigate("about:blank"))
	var paint, zoom, scroll, longest, rows, loaded []float64
	for b.Loop() {
		p.do("closing", chromedp.Navigate("about:blank"))
		began := time.Now()
		p.do("opening", chromedp.Navigate(address+hash), chromedp.WaitVisible("nav", chromedp.ByQuery))
		paint = append(paint, p.painted())
		p.until("document.querySelector('.row')")
		rows = append(rows, time.Since(began).Seconds())
		p.do("waiting", chromedp.Poll(fmt.Sprintf("document.querySelector('.view "+
			"[role=status]')?.textContent.includes(%q)", entries), nil,
			chromedp.WithPollingTimeout(2*time.Minute)))
		loaded = append(loaded, time.Since(began).Seconds())
		z, worst := p.frames(zooming)
		s, _ := p.frames(scrolling)
		zoom, scroll, longest = append(zoom, z), append(scroll, s), append(longest, worst)
	}
	b.ReportMetric(slices.Min(paint), "ms/paint")
	b.ReportMetric(slices.Min(rows), "s/rows")
	b.ReportMetric(loaded[0], "s/load") // later the server has read it
	b.ReportMetric(slices.Max(zoom), "zoom/s")
	b.ReportMetric(slices.Min(longest), "ms/longest")
	b.ReportMetric(slices.Max(scroll), "scroll/s")
	b.ReportMetric(p.memory(), "MB")
}

// BenchmarkReport is the page with a run in it, in the folder ACP_TEST_LARGE.
func BenchmarkReport(b *testing.B) {
	view(b, "file://"+filepath.Join(given(b, "ACP_TEST_LARGE"), "page", "report.html"), "#/s/s150/frames", " entries")
}

// BenchmarkServed is the same run, and a transcript of a million entries, from acp-test ui.
func BenchmarkServed(b *testing.B) {
	view(b, serving(b, given(b, "ACP_TEST_PROGRAM"), filepath.Join(given(b, "ACP_TEST_LARGE"), "page")),
		"#/s/s150/frames", " entries")
}

func BenchmarkMillion(b *testing.B) {
	view(b, serving(b, given(b, "ACP_TEST_PROGRAM"), filepath.Join(given(b, "ACP_TEST_LARGE"), "million.jsonl")),
		"#/s/million.jsonl/frames", " entries")
}

// The scenario in which an agent says much, and how fast it does.
const (
	much  = "# Much is said.\nprompt 'Say much.'\nawait turn end_turn\n-- llm.yaml --\nreplies: []\n"
	rate  = 5000
	spent = 8 // seconds
)

// BenchmarkLive is a run of that rate which is looked at while it goes on.
func BenchmarkLive(b *testing.B) {
	var median, most []float64
	for b.Loop() {
		dir := b.TempDir()
		p := watching(b, dir)
		end := talking(b, dir, "out", strconv.Itoa(rate*spent), strconv.Itoa(rate))
		p.until(`document.body.innerText.includes("much")`)
		p.eval(`location.hash = "#/s/much/frames", 0`)
		p.do("waiting for rows", chromedp.WaitVisible(".row", chromedp.ByQuery))
		var began time.Time
		if line, err := os.ReadFile(filepath.Join(dir, "out", "much", "transcript.jsonl")); err == nil {
			var head struct{ Started time.Time }
			first, _, _ := bytes.Cut(line, []byte("\n"))
			if err := json.Unmarshal(first, &head); err != nil {
				b.Fatal(err)
			}
			began = head.Started
		}
		// In each frame: how old is the last row, if it is another one than before.
		var late []float64
		p.do("looking", chromedp.Evaluate(fmt.Sprintf(`new Promise(done => {
			const began = %d, late = [], until = performance.now() + %d;
			let last = 0;
			const tick = now => {
				const rows = [...document.querySelectorAll(".row")].map(e => [Number(e.id.slice(1)), `+
			`Number(e.querySelector("time").textContent)]).sort((a, b) => b[0] - a[0]);
				if (rows.length && rows[0][0] > last) { if (last) late.push(Date.now() - began - rows[0][1]); last = `+
			`rows[0][0]; }
				now < until ? requestAnimationFrame(tick) : done(late);
			};
			requestAnimationFrame(tick);
		})`, began.UnixMilli(), (spent-3)*1000), &late, awaited))
		end()
		if len(late) < 20 {
			b.Fatalf("only %d frames had anything new", len(late))
		}
		slices.Sort(late)
		median, most = append(median, late[len(late)/2]), append(most, late[len(late)*99/100])
	}
	b.ReportMetric(slices.Min(median), "ms/median-lag")
	b.ReportMetric(slices.Min(most), "ms/p99-lag")
}

// BenchmarkSlows is how much longer a run takes that is looked at, and how much more time of a processor: of pairs of
// the
// same burst, of which every second begins with the one that is looked at, the middle of their ratios.
func BenchmarkSlows(b *testing.B) {
	var took, worked []float64
	for b.Loop() {
		dir := b.TempDir()
		once := func(out string) (wall, cpu float64) {
			began := time.Now()
			cpu = talking(b, dir, out, "45000")() // in each of two turns
			return time.Since(began).Seconds(), cpu
		}
		p := watching(b, dir)
		var wall, cpu [2]float64
		for k := range 2 {
			seen := (len(took) + k) % 2
			wall[seen], cpu[seen] = once([]string{"beside", "out"}[seen])
		}
		p.do("seeing it", chromedp.Poll(`document.body.innerText.includes("much")`, nil))
		took, worked = append(took, wall[1]/wall[0]), append(worked, cpu[1]/cpu[0])
	}
	slices.Sort(took)
	slices.Sort(worked)
	b.ReportMetric(took[len(took)/2], "ratio")
	b.ReportMetric(worked[len(worked)/2], "cpu-ratio")
}

// watching opens the page of a folder in which there is no run yet.
func watching(b *testing.B, dir string) *page {
	if err := os.MkdirAll(filepath.Join(dir, "out"), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "much.txtar"), []byte(much), 0o600); err != nil {
		b.Fatal(err)
	}
	p := at(b, serving(b, given(b, "ACP_TEST_PROGRAM"), filepath.Join(dir, "out")))
	p.visit("#/", "nav")
	return p
}

// talking starts a run on the second processor; the returned function waits for its end and tells how many seconds of
// the processor it and its agent took.
func talking(b *testing.B, dir, out string, updates ...string) func() float64 {
	run := exec.Command("taskset",
		append([]string{"-c", "1", given(b, "ACP_TEST_PROGRAM"), "run", "much.txtar", "-q", "--out", out,
			"--step-timeout", "60s",
			"--timeout", "90s", "--", given(b, "ACP_TEST_MEASURE"), "agent"}, updates...)...)
	run.Dir = dir
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	if err := run.Start(); err != nil {
		b.Fatal(err)
	}
	return func() float64 {
		err := run.Wait() // what the verdict is does not matter
		if _, missing := os.Stat(filepath.Join(dir, out, "results.json")); missing != nil {
			b.Fatalf("%v: %s", err, said.Bytes())
		}
		return (run.ProcessState.UserTime() + run.ProcessState.SystemTime()).Seconds()
	}
}
