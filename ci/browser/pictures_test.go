package browser

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", "", "write the pictures of the guide to `DIR`")

var screens = flag.String("screens", "", "write a picture of each view, width and theme to `DIR`")

// screen writes a picture of the page as it is, where they were asked for, to be looked at:
//
//	ci/browser/run -run 'Access|Tables|Scratch|Sweep|Explored|WhatChanged' -args -screens /tmp/screens
func (p *page) screen(name string) {
	p.t.Helper()
	if *screens == "" {
		return
	}
	var shot []byte
	p.do("taking a picture", chromedp.CaptureScreenshot(&shot))
	if err := os.WriteFile(filepath.Join(*screens, name+".png"), shot, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// The pictures of the guide are those of a run of the shipped scenarios with an agent that
// ends cancelled turns as if nothing were. After a change of what they show:
//
//	ci/browser/run -run TestPictures -args -pictures ../../docs/pictures
func TestPictures(t *testing.T) {
	dir := t.TempDir()
	acpTest(t, dir, 1, "run", "--run", "^(cancel/(mid-|late-|twice|other-)|prompt-turn/|permission/)", "--fault",
		"cancel-end-turn", "-q")
	p := at(t, "file://"+filepath.Join(dir, "acp-test-out", "report.html"))
	for _, of := range []struct {
		name, hash, wait, ready string
		height                  int64
		seen                    string
	}{
		{"index", "#/", "#causes", `document.fonts.status === "loaded"`, 720, "What is wrong"},
		{"frames", "#/s/cancel%2Flate-permission-answer/frames/28", ".row.at", `document.querySelector(".json .leaf") &&
			([...document.querySelectorAll(".leaf")].at(-1).dispatchEvent(new MouseEvent("mouseenter")), ` +
			`document.querySelector(".field-about b"))`, 760, "StopReason"},
		{"timeline", "#/s/cancel%2Flate-permission-answer/timeline/28", ".timeline.tall canvas", drawn + " > 8", 760,
			"in view"},
	} {
		for _, scheme := range []string{"light", "dark"} {
			p.do("setting the screen", chromedp.EmulateViewport(1280, of.height), emulate(scheme))
			p.visit(of.hash, of.wait)
			p.until("Boolean(" + of.ready + ")")
			p.until(`document.body.innerText.includes("` + of.seen + `")`)
			var shot []byte
			p.do("taking the picture", chromedp.ActionFunc(func(ctx context.Context) (err error) {
				shot, err = cdppage.CaptureScreenshot().WithFormat(cdppage.CaptureScreenshotFormatWebp).WithQuality(50).
					Do(ctx)
				return err
			}))
			name := of.name + "-" + scheme + ".webp"
			if *pictures != "" {
				if err := os.WriteFile(filepath.Join(*pictures, name), shot, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if info, err := os.Stat(filepath.Join("../../docs/pictures", name)); err != nil || info.Size() > 100_000 {
				t.Errorf("docs/pictures/%s: %v, %v", name, info, err)
			}
		}
	}
	p.quiet()
}
