package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// BenchmarkFirstPaint is the time from opening the page to its first content,
// as the browser itself measures it.
func BenchmarkFirstPaint(b *testing.B) {
	p := open(b)
	p.do("starting the browser", chromedp.Navigate("about:blank"))
	total := 0.0
	for b.Loop() {
		p.do("opening the page", chromedp.Navigate(p.address), chromedp.WaitVisible("#search", chromedp.ByQuery))
		p.until(`performance.getEntriesByName("first-contentful-paint").length > 0`)
		total += p.eval(`performance.getEntriesByName("first-contentful-paint")[0].startTime`).(float64)
	}
	b.ReportMetric(total/float64(b.N), "ms/paint")
}
