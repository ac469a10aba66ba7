package schema

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// compile reads the tables of one protocol version. The file v1/shared.txt explains the form of the tables.
func compile(number int, tables fs.FS, unstable string) (*Version, error) {
	c := &compiler{
		version: &Version{
			number: number, methods: map[string]*method{}, shapes: map[string]*shape{}, unstable: map[string]bool{},
		},
		builtin: builtins(),
	}
	names, err := fs.Glob(tables, "*.txt")
	if err != nil {
		return nil, err
	}
	// The unstable table must be read last, because it extends the others.
	slices.Sort(names)
	if i := slices.Index(names, unstable); i >= 0 {
		names = append(slices.Delete(names, i, i+1), unstable)
	}
	for _, name := range names {
		text, err := fs.ReadFile(tables, name)
		if err != nil {
			return nil, err
		}
		c.unstable, c.current = name == unstable, nil
		for i, line := range strings.Split(string(text), "\n") {
			if err := c.line(line); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
			}
		}
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	return c.version, nil
}

type compiler struct {
	version  *Version
	builtin  map[string]*shape
	aliases  []*shape // shapes that become copies of the shape in elem
	current  *shape   // definition to which indented lines belong
	unstable bool
}

func builtins() map[string]*shape {
	m := map[string]*shape{
		"any":      {kind: anyValue, nullOK: true},
		"object":   {kind: anyObject},
		"string":   {kind: text},
		"nonempty": {kind: filledText},
		"boolean":  {kind: boolean},
		"number":   {kind: number},
		"fraction": {kind: fraction},
	}
	for name, bounds := range map[string][2]string{
		"size16": {"1", "65535"},
		"line32": {"1", "4294967295"},
		"int32":  {"-2147483648", "2147483647"},
		"int64":  {"-9223372036854775808", "9223372036854775807"},
		"uint16": {"0", "65535"},
		"uint32": {"0", "4294967295"},
		"uint64": {"0", "18446744073709551615"},
	} {
		m[name] = &shape{kind: integer, low: bounds[0], high: bounds[1]}
	}
	return m
}

func (c *compiler) line(line string) error {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return nil
	}
	if line[0] == ' ' {
		return c.part(words)
	}
	c.current = nil
	if len(words) < 2 {
		return fmt.Errorf("%q says nothing", line)
	}
	name, options := words[1], words[2:]
	switch words[0] {
	case "method":
		return c.method(name, options)
	case "code":
		code, err := strconv.Atoi(name)
		if err != nil {
			return fmt.Errorf("error code %q is not a number", name)
		}
		c.version.codes = append(c.version.codes, ErrorCode{Code: code, Meaning: strings.Join(options, " ")})
		return nil
	case "extend":
		c.current = c.named(name)
		c.current.drafts = append(c.current.drafts, options...)
		return nil
	}
	s := c.named(name)
	if s.kind != unresolved {
		return fmt.Errorf("%q is there twice", name)
	}
	c.version.unstable[name] = c.unstable
	kind, ok := map[string]shapeKind{"type": record, "union": union, "choice": choice, "enum": enum,
		"alias": alias}[words[0]]
	if !ok {
		return fmt.Errorf("%q is no kind of definition", words[0])
	}
	if s.kind = kind; kind <= choice {
		c.current = s
	}
	return c.define(s, options)
}

// define reads the words after the name of a definition.
func (c *compiler) define(s *shape, options []string) (err error) {
	switch s.kind {
	case record:
		for _, option := range options {
			flag := map[string]*bool{"without-meta": &s.noMeta, "loose": &s.loose, "null-seen": &s.nullSeen}[option]
			if flag == nil {
				return fmt.Errorf("a type has no option %q", option)
			}
			*flag = true
		}
	case union:
		if len(options) < 2 || options[0] != "by" {
			return fmt.Errorf("union %s: want by KEY", s.name)
		}
		s.word, s.open = options[1], slices.Contains(options[2:], "open")
	case enum:
		// A value "open" is possible too, but only after the option "open".
		if len(options) > 0 && options[0] == "open" {
			s.open, options = true, options[1:]
		}
		s.values = options
	case alias:
		s.elem, err = c.ref(strings.Join(options, " "))
		c.aliases = append(c.aliases, s)
	}
	return err
}

// part reads an indented line: a field, a tag or an alternative.
func (c *compiler) part(words []string) (err error) {
	s := c.current
	if s == nil {
		return fmt.Errorf("%q belongs to nothing", words[0])
	}
	if s.kind == record {
		return c.field(s, words)
	}
	v := variant{unstable: c.extends(s)}
	if s.kind == union {
		v.tag, words = words[0], words[1:]
	}
	if v.ref, err = c.ref(words[0]); err != nil {
		return err
	}
	for words = words[1:]; len(words) > 0; words = words[1:] {
		switch {
		case words[0] == "content":
			v.content = true
		case words[0] == "when" && len(words) > 1:
			v.gate, words = words[1], words[1:]
		case words[0] == "with" && len(words) > 1 && s.kind == choice:
			v.key, v.tag, _ = strings.Cut(words[1], "=")
			words = words[1:]
		default:
			return fmt.Errorf("%q is not a property of a variant", words[0])
		}
	}
	if v.tag == "*" && s.kind == union {
		s.rest = v.shape
		return nil
	}
	s.variants = append(s.variants, v)
	return nil
}

func (c *compiler) field(s *shape, words []string) (err error) {
	if len(words) < 2 {
		return fmt.Errorf("field %q has no type", words[0])
	}
	f := field{unstable: c.extends(s)}
	name, optional := strings.CutSuffix(words[0], "?")
	f.name = name
	if f.ref, err = c.ref(words[1]); err != nil {
		return err
	}
	for _, mark := range strings.Join(words[2:], "") {
		switch mark {
		case 'd':
			f.onError = true
		case 's': // dropped items need no flag: mark d already makes their loss Lossy
		case 'n':
			f.onNull = true
		default:
			return fmt.Errorf("field %q: unknown mark %q", name, mark)
		}
	}
	if !optional {
		s.required |= 1 << len(s.fields)
	}
	s.fields = append(s.fields, f)
	return nil
}

// extends reports whether the current table adds an unstable part to a stable shape. A part of an unstable shape needs
// no mark of its own, because the use of the shape is reported.
func (c *compiler) extends(s *shape) bool { return c.unstable && !c.version.unstable[s.name] }

// ref parses a type in the notation of the tables.
func (c *compiler) ref(text string) (ref, error) {
	base, nullable := strings.CutSuffix(text, "|null")
	for suffix, kind := range map[string]shapeKind{"[]": list, "[+]": filledList, "{}": dict} {
		if elem, ok := strings.CutSuffix(base, suffix); ok {
			inner, err := c.ref(elem)
			return ref{&shape{kind: kind, elem: inner}, nullable}, err
		}
	}
	if rest, ok := strings.CutPrefix(base, `not"`); ok {
		return ref{&shape{kind: otherText, word: strings.TrimSuffix(rest, `"`)}, nullable}, nil
	}
	if s, ok := c.builtin[base]; ok {
		return ref{s, nullable}, nil
	}
	if base == "" || strings.ContainsAny(base, "[]{}|\"?") {
		return ref{}, fmt.Errorf("%q is no type", text)
	}
	return ref{c.named(base), nullable}, nil
}

// unresolved is the kind of a shape that was used but not yet defined.
const unresolved shapeKind = 255

// alias is the kind of a shape that finish replaces with a copy of elem.
const alias shapeKind = 254

func (c *compiler) named(name string) *shape {
	s := c.version.shapes[name]
	if s == nil {
		s = &shape{name: name, kind: unresolved}
		c.version.shapes[name] = s
	}
	return s
}

// finish resolves the aliases. It returns an error if a shape has no definition.
func (c *compiler) finish() error {
	for _, s := range c.aliases {
		target := s
		for steps := 0; target.kind == alias; steps++ {
			if steps > len(c.aliases) {
				return fmt.Errorf("alias %q stands for itself", s.name)
			}
			target = target.elem.shape
		}
		name := s.name
		*s = *target
		s.name = name
	}
	for name, s := range c.version.shapes {
		if s.kind == unresolved {
			return fmt.Errorf("%q is used and not defined", name)
		}
		if len(s.fields) > 64 {
			return fmt.Errorf("%q has more than 64 fields", name)
		}
		for _, v := range s.variants {
			s.nullOK = s.nullOK || s.kind == choice && v.nullable
		}
	}
	return nil
}

func (c *compiler) method(name string, words []string) error {
	if len(words) < 3 {
		return fmt.Errorf("method %s: want KIND DIRECTION PARAMS", name)
	}
	if c.version.methods[name] != nil {
		return fmt.Errorf("method %s is there twice", name)
	}
	m := &method{Method: Method{Name: name, Params: words[2], Stable: !c.unstable}}
	m.Request = words[0] == "request" || words[0] == "either"
	m.Notification = words[0] == "notification" || words[0] == "either"
	m.Direction = map[string]Direction{"to-agent": ToAgent, "to-editor": ToEditor, "both": Both}[words[1]]
	switch {
	case !m.Request && !m.Notification:
		return fmt.Errorf("method %s: unknown kind %q", name, words[0])
	case m.Direction == 0:
		return fmt.Errorf("method %s: unknown direction %q", name, words[1])
	}
	var err error
	if m.params, err = c.ref(words[2]); err != nil {
		return err
	}
	for words = words[3:]; len(words) > 0; words = words[2:] {
		switch {
		case len(words) < 2:
			return fmt.Errorf("method %s: %q needs a word after it", name, words[0])
		case words[0] == "->":
			m.Result = words[1]
			if m.result, err = c.ref(words[1]); err != nil {
				return err
			}
		case words[0] == "when":
			m.Gate = words[1]
		default:
			return fmt.Errorf("method %s: want -> or when, not %q", name, words[0])
		}
	}
	if m.Request != (m.Result != "") {
		return fmt.Errorf("method %s: a request must have a result, and a notification must have none", name)
	}
	c.version.methods[name] = m
	c.version.order = append(c.version.order, name)
	return nil
}
