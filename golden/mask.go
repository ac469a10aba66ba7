package golden

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-test/acp-test/internal/lazy"
)

// Replacement masks a text that one agent prints differently in each run. With replaces each match of Pattern, and
// may refer to its groups ("$1").
type Replacement struct {
	Pattern *regexp.Regexp
	With    string
}

// IDClass is the kind of object that an opaque id refers to. The label of an id begins with its class.
type IDClass string

const uuid IDClass = "uuid"

// Mask replaces text that differs from run to run. It numbers ids in the order of its calls, so the calls must follow
// the order of the text.
type Mask struct {
	plain    bool // the mask changes nothing
	blind    bool // ids have no numbers, so the text does not depend on earlier calls
	dirs     []directory
	replace  []Replacement
	values   []string
	without  []string
	software []string           // members that describe a program and its version
	inside   []string           // ids that are also replaced inside other text, longest first
	classes  map[string]IDClass // class of each string that is an id
	labels   map[IDClass]map[string]string
}

type directory struct{ path, name string }

// NewMask returns a mask without known ids. software names the members that describe a program; the mask hides
// versions in them.
func NewMask(o Options, software ...string) *Mask {
	m := &Mask{software: software, replace: o.Replace, values: o.Values, without: o.Without, classes: map[string]IDClass{},
		labels: map[IDClass]map[string]string{}}
	for _, p := range []directory{{o.Work, "$WORK"}, {o.Home, "$HOME"}, {o.Temp, "$TMP"}, {o.Root, "$RUN"}} {
		if p.path = strings.TrimSuffix(p.path, "/"); p.path == "" {
			continue
		}
		m.dirs = append(m.dirs, p)
		// Some agents write an absolute path without its leading slash. Such a path is masked only if it contains another
		// slash, because a single word may occur anywhere.
		if rest, ok := strings.CutPrefix(p.path, "/"); ok && strings.Contains(rest, "/") {
			m.dirs = append(m.dirs, directory{rest, strings.TrimPrefix(p.name, "$")})
		}
		// In a URI, a space in the path is %20.
		if u := (&url.URL{Path: p.path}).EscapedPath(); u != p.path {
			m.dirs = append(m.dirs, directory{u, p.name})
		}
	}
	// Longer paths first, because the workspace may lie inside the temporary directory.
	sort.SliceStable(m.dirs, func(i, j int) bool { return len(m.dirs[i].path) > len(m.dirs[j].path) })
	return m
}

// PlainMask returns a mask that changes nothing.
func PlainMask() *Mask { return &Mask{plain: true} }

// BlindMask returns a mask that shows only the class of an id, without a number.
func BlindMask() *Mask { return &Mask{blind: true, classes: map[string]IDClass{}} }

// Plain reports whether the mask changes nothing.
func (m *Mask) Plain() bool { return m.plain }

// Hides reports whether the text omits a member.
func (m *Mask) Hides(key string) bool { return !m.plain && slices.Contains(m.without, key) }

// Blinded returns a copy of the mask that shows ids without numbers. Its text is suitable as a sort key.
func (m *Mask) Blinded() *Mask {
	other := *m
	other.blind = true
	return &other
}

// LearnInside marks a string as an id that is also replaced inside other text. Ids shorter than 6 bytes are replaced
// only as whole strings, because they may be ordinary words.
func (m *Mask) LearnInside(class IDClass, id string) {
	m.Learn(class, id)
	const shortest = 6
	if len(id) < shortest {
		return
	}
	at := sort.Search(len(m.inside), func(i int) bool { return len(m.inside[i]) <= len(id) })
	m.inside = slices.Insert(m.inside, at, id)
}

// Learn marks a string as an id. It is replaced only where a whole string equals it.
func (m *Mask) Learn(class IDClass, id string) {
	if _, known := m.classes[id]; !known && id != "" {
		m.classes[id] = class
	}
}

// ID returns the label of an id: its class and a number in order of first use, such as "call#1".
func (m *Mask) ID(class IDClass, id string) string {
	if m.plain {
		return PathText(id)
	}
	if m.blind {
		return string(class) + "#"
	}
	labels := m.labels[class]
	if labels == nil {
		labels = map[string]string{}
		m.labels[class] = labels
	}
	label, ok := labels[id]
	if !ok {
		label = string(class) + "#" + strconv.Itoa(len(labels)+1)
		labels[id] = label
	}
	return label
}

var (
	uuids = lazy.Regexp(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	dates = lazy.Regexp(`\b(?:19|20)\d\d-[01]\d-[0-3]\d(?:[T ][0-2]\d:[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?(?: ` +
		`?(?:Z|[+-]\d\d:?\d\d))?)?\b`)
	digits = lazy.Regexp(`\d+`)
)

// Text returns s with placeholders for all parts that differ from run to run.
func (m *Mask) Text(s string) string {
	if m.plain || s == "" {
		return s
	}
	if class, ok := m.classes[s]; ok {
		return m.ID(class, s)
	}
	for _, p := range m.dirs {
		s = replacePath(s, p)
	}
	for _, id := range m.inside {
		if strings.Contains(s, id) {
			s = strings.ReplaceAll(s, id, m.ID(m.classes[id], id))
		}
	}
	for _, r := range m.replace {
		s = r.Pattern.ReplaceAllString(s, r.With)
	}
	if !strings.ContainsAny(s, "0123456789") {
		return s
	}
	if strings.Count(s, "-") >= 4 {
		s = uuids().ReplaceAllStringFunc(s, func(id string) string { return m.ID(uuid, strings.ToLower(id)) })
	}
	if strings.Count(s, "-") >= 2 && hasDigits(s, 4) {
		s = dates().ReplaceAllStringFunc(s, func(date string) string {
			if len(date) == len("2006-01-02") {
				return "<date>"
			}
			return "<time>"
		})
	}
	if !hasDigits(s, millisDigits) {
		return s
	}
	return digits().ReplaceAllStringFunc(s, func(n string) string {
		if epochMillis(n) {
			return "<ms>"
		}
		return n
	})
}

const millisDigits = 13

// hasDigits reports whether s has a run of at least wanted digits.
func hasDigits(s string, wanted int) bool {
	n := 0
	for i := 0; i < len(s) && n < wanted; i++ {
		if n++; s[i] < '0' || s[i] > '9' {
			n = 0
		}
	}
	return n == wanted
}

// epochMillis reports whether a run of digits is a Unix time in milliseconds between 2017 and 2033.
func epochMillis(n string) bool {
	return len(n) == millisDigits && n[0] == '1' && '5' <= n[1] && n[1] <= '9'
}

// number returns a JSON number, or a placeholder if numbers under this key differ from run to run.
func (m *Mask) number(key, raw string) string {
	switch {
	case m.plain:
	case epochMillis(raw):
		return "<ms>"
	case volatile(key):
		return "<n>"
	}
	return raw
}

// volatile reports whether the name of a member means a time, a duration or a process id, which differ in each run.
// It runs for every member, so for speed it uses no regular expression.
func volatile(key string) bool {
	for _, end := range []string{"At", "_at", "_at_ms", "AtMs"} {
		if len(key) > len(end) && strings.HasSuffix(key, end) {
			return true
		}
	}
	key = strings.ToLower(key)
	switch key {
	case "pid", "process_id", "processid", "pgid":
		return true
	}
	for _, unit := range []string{"ms", "secs", "sec", "seconds"} {
		if bare, found := strings.CutSuffix(key, unit); found {
			key = strings.TrimSuffix(bare, "_")
			break
		}
	}
	return slices.ContainsFunc([]string{"timestamp", "duration", "elapsed", "latency"},
		func(what string) bool { return strings.HasSuffix(key, what) })
}

// replacePath replaces a directory if it is a whole path or its first part. For /tmp/work it replaces neither
// /tmp/workshop nor /var/tmp/work.
func replacePath(s string, p directory) string {
	if !strings.Contains(s, p.path) {
		return s
	}
	var b strings.Builder
	for at := strings.Index(s, p.path); at >= 0; at = strings.Index(s, p.path) {
		end := at + len(p.path)
		before, _ := utf8.DecodeLastRuneInString(s[:at])
		after, _ := utf8.DecodeRuneInString(s[end:])
		whole := !(end < len(s) &&
			(unicode.IsLetter(after) || unicode.IsDigit(after) || strings.ContainsRune("_-", after))) &&
			!(at > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before) ||
				!path.IsAbs(p.path) && strings.ContainsRune("/\\._-~$", before)))
		shown := p.path
		if whole {
			shown = p.name
		}
		b.WriteString(s[:at] + shown)
		s = s[end:]
	}
	b.WriteString(s)
	return b.String()
}
