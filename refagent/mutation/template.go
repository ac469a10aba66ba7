package mutation

import (
	"fmt"
	"strings"
)

// template is a text or a JSON value that contains references: $NAME or ${NAME}.
type template struct {
	parts []part
	whole *ref // set if the template is only this reference
}

type part struct {
	text   string
	ref    *ref // nil if the part is text
	quoted bool // the reference is inside a JSON string
}

var reference = lazily(`^\$(?:\{([^}]+)\}|((?:@@?)?\.?[A-Za-z]\w*(?:\[[\w.@]+\])?(?:\.\w+)*))`)

var bareWord = lazily(`^[A-Za-z_][\w./-]*$`)

// parseTemplate parses a template for a JSON value. A bare word is a string.
func parseTemplate(s string) (*template, error) {
	if bareWord().MatchString(s) && s != "true" && s != "false" && s != "null" {
		s = `"` + s + `"`
	}
	t, err := parseText(s)
	if err != nil {
		return nil, err
	}
	var sample strings.Builder
	for _, p := range t.parts {
		if sample.WriteString(p.text); p.ref != nil {
			sample.WriteString("0")
		}
	}
	if decodeValue([]byte(sample.String())) == nil && sample.String() != "null" {
		return nil, fmt.Errorf("%s is not valid JSON", s)
	}
	if len(t.parts) == 1 {
		t.whole = t.parts[0].ref
	}
	return t, nil
}

// parseText parses a template for a text.
func parseText(s string) (*template, error) {
	t := &template{}
	quoted, from := false, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case '$':
			m := reference().FindStringSubmatch(s[i:])
			if m == nil {
				continue
			}
			r, err := parseRef(m[1] + m[2])
			if err != nil {
				return nil, err
			}
			if from < i {
				t.parts = append(t.parts, part{text: s[from:i]})
			}
			t.parts = append(t.parts, part{ref: r, quoted: quoted})
			i += len(m[0]) - 1
			from = i + 1
		}
	}
	if from < len(s) {
		t.parts = append(t.parts, part{text: s[from:]})
	}
	return t, nil
}

// value returns the template as a JSON value, in which references are replaced by their values.
func (t *template) value(m *moment) any {
	if t.whole != nil {
		return cloned(t.whole.value(m))
	}
	var b strings.Builder
	for _, p := range t.parts {
		switch {
		case p.ref == nil:
			b.WriteString(p.text)
		case p.quoted:
			text := encode(plain(p.ref.value(m)))
			b.Write(text[1 : len(text)-1])
		default:
			b.Write(encode(p.ref.value(m)))
		}
	}
	return decodeValue([]byte(b.String()))
}

// text returns the template as text, in which references are replaced by their values.
func (t *template) text(m *moment) string {
	var b strings.Builder
	for _, p := range t.parts {
		if b.WriteString(p.text); p.ref != nil {
			b.WriteString(plain(p.ref.value(m)))
		}
	}
	return b.String()
}

// plain converts a value to text: a string stays unchanged, null becomes "", other values become JSON.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return string(encode(v))
}
