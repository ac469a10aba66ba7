package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// style colours text for one stream: only on a terminal that can show it, and
// not with NO_COLOR (https://no-color.org).
type style struct{ colours bool }

func (h *host) style(w io.Writer) style {
	noColour, _ := h.getenv("NO_COLOR")
	kind, _ := h.getenv("TERM")
	return style{isTerminal(w) && noColour == "" && kind != "dumb"}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (s style) put(code, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) faint(text string) string { return s.put("2", text) }
func (s style) red(text string) string   { return s.put("31", text) }
func (s style) green(text string) string { return s.put("32", text) }
func (s style) blue(text string) string  { return s.put("34", text) }

// getenv looks a variable up in the host's environment; the last one counts.
func (h *host) getenv(name string) (string, bool) {
	for i := len(h.env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(h.env[i], name+"="); ok {
			return v, true
		}
	}
	return "", false
}
