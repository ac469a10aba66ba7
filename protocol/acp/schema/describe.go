package schema

import "strings"

// Description describes a type for a reader. Fields that do not apply to the type are empty.
type Description struct {
	// Is describes a type without parts, such as "string" or "uint32".
	Is string `json:"is,omitempty"`
	// Fields are the members of an object. Each has a name, which ends in ? if the member is optional, and a type. In
	// a type, [] marks a list, {} a map, and |null that null is allowed. A member of the unstable schema also has the
	// word "unstable".
	Fields [][]string `json:"fields,omitempty"`
	// By is the member whose value says which of Forms an object has. Each form has a tag and a type.
	By    string     `json:"by,omitempty"`
	Forms [][]string `json:"forms,omitempty"`
	// Values are the values of an enum. Open says that other values are allowed too.
	Values []string `json:"values,omitempty"`
	Open   bool     `json:"open,omitempty"`
	// Unstable says that only the unstable schema has the type.
	Unstable bool `json:"unstable,omitempty"`
}

// Describe returns descriptions of all types, by name.
func (v *Version) Describe() map[string]Description {
	all := map[string]Description{}
	for name, s := range v.shapes {
		d := s.describe()
		d.Unstable = v.unstable[name]
		all[name] = d
	}
	return all
}

func (s *shape) describe() Description {
	d := Description{Open: s.open, Values: s.values}
	switch s.kind {
	case record:
		for i, f := range s.fields {
			name := f.name
			if s.required&(1<<i) == 0 {
				name += "?"
			}
			d.Fields = append(d.Fields, unstable([]string{name, f.ref.String()}, f.unstable))
		}
	case union, choice:
		d.By = s.word
		for _, f := range s.variants {
			d.Forms = append(d.Forms, unstable([]string{f.tag, f.ref.String()}, f.unstable))
		}
		if s.rest != nil {
			d.Forms = append(d.Forms, []string{"*", s.rest.name})
		}
	case enum:
	default:
		d.Is = (&shape{kind: s.kind, elem: s.elem, word: s.word, low: s.low, high: s.high}).String()
	}
	return d
}

func unstable(words []string, is bool) []string {
	if is {
		return append(words, "unstable")
	}
	return words
}

// String returns the type in the notation of the tables.
func (r ref) String() string {
	if r.nullable {
		return r.shape.String() + "|null"
	}
	return r.shape.String()
}

func (s *shape) String() string {
	switch {
	case s.name != "":
		return s.name
	case s.kind == list:
		return s.elem.String() + "[]"
	case s.kind == filledList:
		return s.elem.String() + "[+]"
	case s.kind == dict:
		return s.elem.String() + "{}"
	case s.kind == otherText:
		return "string but " + strings.TrimSpace(s.word)
	case s.kind == integer:
		return "whole number from " + s.low + " to " + s.high
	}
	return map[shapeKind]string{anyValue: "any", anyObject: "object", text: "string", filledText: "string, not empty",
		boolean: "boolean", number: "number", fraction: "number from 0 to 1"}[s.kind]
}
