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
	otherText  // any string except word
	boolean
	number
	fraction   // a number from 0 to 1
	integer    // a whole number from low to high
	list       // an array of elem
	filledList // an array of elem with at least one item
	dict       // an object whose values are all elem
	record     // an object with known fields
	union      // an object with a member that says which variant it is
	choice     // a value that fits one of the variants
	enum       // one of the values
)

// shape is one type of the protocol.
type shape struct {
	kind shapeKind
	name string // name in the schema; "" if the type has none

	word string // otherText: the forbidden string; union: the key of the tag
	low  string // integer: the bounds in decimal notation
	high string //
	elem ref    // list, dict
	open bool   // union, enum: other values are allowed too
	rest *shape // union: shape of variants that are not listed

	fields   []field
	required uint64 // record: bit i is set if fields[i] is mandatory
	nullOK   bool   // null is allowed wherever the shape is used
	recordOptions

	variants []variant
	values   []string
	drafts   []string // enum: values of the unstable schema
}

// recordOptions are the options after the name of a type in the tables.
type recordOptions struct {
	noMeta   bool // _meta is an unknown key
	loose    bool // unknown keys are allowed
	nullSeen bool // an example of the protocol's documentation has null for this type
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
	onError  bool // mark d: an invalid value counts as absent
	onNull   bool // mark n: null counts as absent
	unstable bool
}

// variant is one form of a union or one alternative of a choice.
type variant struct {
	key string // choice: a member whose value must be tag; "" if there is none
	tag string
	ref
	gate     string
	content  bool
	unstable bool
}

// find returns the index of the field with the given key, or -1.
func (s *shape) find(key wire.Value) int {
	for i := range s.fields {
		if key.Is(s.fields[i].name) {
			return i
		}
	}
	return -1
}

// variant returns the form of a union that has the given tag, or nil.
func (s *shape) variant(tag wire.Value) *variant {
	for i := range s.variants {
		if tag.Is(s.variants[i].tag) {
			return &s.variants[i]
		}
	}
	return nil
}

func (s *shape) has(value wire.Value) bool { return slices.ContainsFunc(s.values, value.Is) }
