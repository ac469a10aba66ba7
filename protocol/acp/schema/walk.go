package schema

import (
	"math"
	"slices"
	"strconv"

	"github.com/acp-test/acp-test/wire"
)

// tags has the keys that the enclosing unions have already checked. Unused elements are "".
type tags [2]string

// and returns t with one more key: that of an inner union or choice.
func (t tags) and(key string) tags {
	if t[0] == "" {
		return tags{key}
	}
	return tags{t[0], key}
}

// check checks a value against a shape. It reports mistakes with severity sev, as mistakes in the named shape in. tag
// has the keys that the enclosing unions have already checked.
func (w *walk) check(r ref, v wire.Value, sev Severity, in *shape, tag tags) {
	if v.IsNull() && (r.nullable || r.nullOK) {
		return
	}
	if r.name != "" && r.kind >= record {
		in = r.shape
	}
	if kind := kinds[r.kind]; kind != wire.Missing && !w.mustBe(v, kind, sev, in) {
		return
	}
	switch r.kind {
	case filledText, otherText, integer, fraction:
		w.scalar(r.shape, v, sev, in)
	case filledList, list:
		if r.kind == filledList && v.Len() == 0 && w.breaks() {
			w.at(sev, v, "", "must have at least one item", in)
		}
		for item := range v.Items() {
			w.check(r.elem, item, sev, in, tags{})
		}
	case dict:
		for _, value := range v.Fields() {
			w.check(r.elem, value, sev, in, tags{})
		}
	case record:
		w.record(r.shape, v, sev, tag)
	case union:
		w.union(r.shape, v, sev, tag)
	case choice:
		w.choice(r.shape, v, sev, tag)
	case enum:
		w.unlisted(r.shape, v, sev)
	}
}

// scalar checks a string or number whose shape restricts its values.
func (w *walk) scalar(s *shape, v wire.Value, sev Severity, in *shape) {
	f, _ := v.Float()
	switch {
	case s.kind == integer:
		w.integer(s, v, sev, in)
	case s.kind == fraction:
		if (f < 0 || f > 1) && w.breaks() {
			w.at(sev, v, "", "must be from 0 to 1, is "+excerpt(v), in)
		}
	case v.Is(s.word) && w.breaks(): // filledText: the word is "", which the text must not be
		w.at(sev, v, "", "must not be "+wire.Quote(s.word), in)
	}
}

// kinds has, for each kind of shape, the kind of JSON value that it requires. It has wire.Missing if several are
// allowed.
var kinds = [...]wire.Kind{
	anyObject: wire.Object, dict: wire.Object, record: wire.Object, union: wire.Object,
	list: wire.Array, filledList: wire.Array,
	text: wire.String, filledText: wire.String, otherText: wire.String, enum: wire.String,
	boolean: wire.Bool, number: wire.Number, fraction: wire.Number, integer: wire.Number, choice: wire.Missing,
}

func (w *walk) mustBe(v wire.Value, kind wire.Kind, sev Severity, in *shape) bool {
	if v.Kind() == kind {
		return true
	}
	if w.breaks() {
		w.at(sev, v, "", "must be "+article(kind)+", is "+article(v.Kind()), in)
	}
	return false
}

// breaks counts a value that does not fit. It reports whether the caller must report the value. If there is no report
// function, the caller need not build a message.
func (w *walk) breaks() bool {
	w.bad++
	return w.report != nil
}

// note reports a problem with a value that is valid nevertheless.
func (w *walk) note(sev Severity, v wire.Value, message string, in *shape) {
	if w.report != nil {
		w.at(sev, v, "", message, in)
	}
}

func (w *walk) integer(s *shape, v wire.Value, sev Severity, in *shape) {
	fits, strict := v.Whole() && inRange(v.Raw(), s.low, s.high), v.Whole()
	if !strict {
		// The schema accepts 1.0 and 1e2 as whole numbers, but some readers do not.
		f, ok := v.Float()
		fits = ok && f == math.Trunc(f) && math.Abs(f) < 1<<63 &&
			inRange(strconv.AppendInt(nil, int64(f), 10), s.low, s.high)
	}
	switch {
	case !fits && w.breaks():
		w.at(sev, v, "", "must be a whole number from "+s.low+" to "+s.high+", is "+excerpt(v), in)
	case fits && !strict && w.report != nil:
		w.at(Style, v, "", "is a whole number written as "+excerpt(v)+", which strict readers refuse", in)
	}
}

func (w *walk) record(s *shape, v wire.Value, sev Severity, tag tags) {
	var seen uint64
	for key, value := range v.Fields() {
		i := s.find(key)
		if i < 0 {
			w.otherKey(s, v, key, value, sev, tag)
			continue
		}
		if seen&(1<<i) != 0 {
			w.note(Style, value, "is a duplicate key; readers take one of the values or refuse the message", s)
		}
		seen |= 1 << i
		f := &s.fields[i]
		inner := sev
		if f.unstable {
			w.note(Unstable, value, "is a key of the unstable schema", s)
			inner = Unstable
		}
		if inner == Fatal && (f.onError || f.onNull && value.IsNull()) {
			inner = Lossy
		}
		w.check(f.ref, value, inner, s, tags{})
	}
	missing := s.required &^ seen
	for i := 0; missing>>i != 0; i++ {
		if missing&(1<<i) != 0 && w.breaks() {
			w.at(sev, v, s.fields[i].name, "is missing", s)
		}
	}
}

// otherKey checks a key that is not a field of the record.
func (w *walk) otherKey(s *shape, v, key, value wire.Value, sev Severity, tag tags) {
	switch {
	case tag[0] != "" && key.Is(tag[0]) || tag[1] != "" && key.Is(tag[1]):
		return
	case key.Is("_meta") && !s.noMeta:
		if value.Kind() != wire.Object && value.Kind() != wire.Null {
			if w.breaks() {
				w.at(max(sev, Lossy), value, "", "must be an object or null, is "+article(value.Kind()), s)
			}
		}
		return
	case s.loose || w.report == nil:
		return
	}
	if sev != Unstable {
		sev = Unknown
	}
	name := key.Str()
	message := "unknown key" + meant(s.closestKey(name, v))
	if name == "_meta" {
		message = "this type has no _meta"
	} else if name != "" && name[0] == '_' {
		message = "unknown key; put the data of an extension into _meta"
	}
	w.at(sev, v, name, message, s)
}

func (w *walk) union(s *shape, v wire.Value, sev Severity, outer tags) {
	tag := v.Get(s.word)
	if tag.Kind() != wire.String {
		if tag.Exists() {
			w.mustBe(tag, wire.String, sev, s)
		} else if w.breaks() {
			w.at(sev, v, s.word, "is missing", s)
		}
		return
	}
	variant := s.variant(tag)
	if variant == nil {
		w.unlisted(s, tag, sev)
		if s.open && s.rest != nil {
			w.check(ref{shape: s.rest}, v, sev, s, outer.and(s.word))
		}
		return
	}
	if variant.unstable {
		w.note(Unstable, tag, "is a value of the unstable schema", s)
		sev = Unstable
	}
	w.check(variant.ref, v, sev, s, outer.and(s.word))
}

// unlisted checks a string that may not be among the values of an enum or the tags of a union.
func (w *walk) unlisted(s *shape, v wire.Value, sev Severity) {
	if s.has(v) {
		return
	}
	if slices.ContainsFunc(s.drafts, v.Is) {
		w.note(Unstable, v, "is a value of the unstable schema", s)
		return
	}
	if s.open {
		if w.report == nil || startsCustom(v) {
			return
		}
		if sev != Unstable {
			sev = Unknown
		}
		known := s.listed()
		w.at(sev, v, "", "is "+excerpt(v)+", not "+either(known)+meant(closest(v.Str(), known))+
			"; values of an extension begin with _", s)
		return
	}
	if w.breaks() {
		known := s.listed()
		w.at(sev, v, "", "must be one of "+either(known)+", is "+excerpt(v)+meant(closest(v.Str(), known)), s)
	}
}

// choice checks a value against the first alternative that fits. If none fits, it reports the mistakes for the
// alternative that fits best.
func (w *walk) choice(s *shape, v wire.Value, sev Severity, tag tags) {
	var best, claimed *variant
	least := 0
	for i := range s.variants {
		alternative := &s.variants[i]
		bad := w.breaksOf(alternative, v, s, tag)
		if claimed == nil && alternative.key != "" && v.Get(alternative.key).Is(alternative.tag) {
			claimed = alternative
		}
		if alternative.unstable && claimed != alternative {
			continue // the sender surely did not mean this one
		}
		if best == nil || bad < least {
			best, least = alternative, bad
		}
		if least == 0 {
			break
		}
	}
	if w.report == nil {
		w.bad += least
		return
	}
	if best.unstable {
		w.note(Unstable, v, "is a form of the unstable schema: "+best.name, s)
		sev = Unstable
	}
	if least == 0 && claimed != nil && claimed != best {
		w.note(Style, v, "says that it is a "+claimed.name+" but fits only "+best.name, s)
	}
	w.alternative(best, v, sev, s, tag)
}

// breaksOf returns the number of mistakes in a value if it is checked as the alternative a. It does not report them.
func (w *walk) breaksOf(a *variant, v wire.Value, s *shape, tag tags) int {
	report, before := w.report, w.bad
	w.report, w.bad = nil, 0
	w.alternative(a, v, Fatal, s, tag)
	bad := w.bad
	w.report, w.bad = report, before
	return bad
}

// alternative checks a value as one of the alternatives of a choice.
func (w *walk) alternative(a *variant, v wire.Value, sev Severity, s *shape, tag tags) {
	if a.key != "" && v.Kind() == wire.Object {
		if tag[1] == "" {
			tag = tag.and(a.key)
		}
		if is := v.Get(a.key); !is.Is(a.tag) {
			if is.Exists() {
				w.bad += 2 // the value claims to be another alternative
			}
			if w.breaks() {
				w.at(sev, v, a.key, "must be "+wire.Quote(a.tag), s)
			}
		}
	}
	w.check(a.ref, v, sev, s, tag)
}
