package schema

import (
	"slices"

	"github.com/acp-test/acp-test/wire"
)

// shapeKind is the kind of JSON value that a shape allows.
type shapeKind uint8

const (
	anyValue shapeKind = iota
	anyObject
	text       // any string
	filledText // a string that is not empty
	otherText  // any string but one
	boolean
	number
	fraction   // a number from 0 to 1
	integer    // within min and max
	list       // an array of elem
	filledList // one that is not empty
	dict       // an object with values of elem
	record     // an object with fields
	union      // an object whose member says which variant it is
	choice     // whatever fits one of the alternatives
	enum       // one of the values
)

// shape is one type of the protocol.
type shape struct {
	kind shapeKind
	name string // as in the schema; "" for what has no name

	word string // literal, notLiteral: the string; union: the key that tells
	low  string // integer: the bounds, as decimal text
	high string //
	elem ref    // list, dict
	open bool   // union, enum: values that are not listed are allowed
	rest *shape // union: what the others look like

	fields   []field
	required uint64 // record: bit i is set if fields[i] must be there
	nullOK   bool   // null fits wherever the shape is used
	recordOptions

	variants []variant
	values   []string
	drafts   []string // enum: values of the unstable schema
}

// recordOptions are the options after the name of a type in the tables.
type recordOptions struct {
	noMeta   bool // _meta is an unknown key
	loose    bool // unknown keys are allowed
	nullSeen bool // null in its place is known from the protocol's pages
}

// ref is the use of a shape in one place, which may also allow null.
type ref struct {
	*shape
	nullable bool
}

// field is one member of a record.
type field struct {
	name string
	ref
	onError  bool // d: a value that does not fit is taken as absent
	onNull   bool // n: null is taken as absent
	unstable bool
}

// variant is one form of a union or one alternative of a choice.
type variant struct {
	key string // choice: a member that must be tag, "" if there is none
	tag string
	ref
	gate     string
	content  bool
	unstable bool
}

// find returns the index of the field with that key, or -1.
func (s *shape) find(key wire.Value) int {
	for i := range s.fields {
		if key.Is(s.fields[i].name) {
			return i
		}
	}
	return -1
}

// variant returns the variant of a union with that tag, or nil.
func (s *shape) variant(tag wire.Value) *variant {
	for i := range s.variants {
		if tag.Is(s.variants[i].tag) {
			return &s.variants[i]
		}
	}
	return nil
}

func (s *shape) has(value wire.Value) bool { return slices.ContainsFunc(s.values, value.Is) }
