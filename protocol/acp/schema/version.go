// Package schema describes the Agent Client Protocol as data: the methods, shapes, enums, error codes and capability
// gates of each version. Check reports what is wrong with a frame, and how much damage each mistake does. The tables
// are text files of this project; a test compares them with the official schema.
package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/acp-test/acp-test/internal/lists"
)

//go:embed v1/*.txt v2/*.txt
var tables embed.FS

// Direction says which side receives a message.
type Direction uint8

// These are the directions. Only a method can have Both.
const (
	ToAgent  Direction = 1
	ToEditor Direction = 2
	Both     Direction = ToAgent | ToEditor
)

// String returns "to the agent" or "to the editor".
func (d Direction) String() string {
	return [...]string{"nowhere", "to the agent", "to the editor", "either way"}[d&Both]
}

// Version has the tables of one protocol version. It does not change.
type Version struct {
	number   int
	methods  map[string]*method
	order    []string
	shapes   map[string]*shape
	unstable map[string]bool // names of unstable shapes
	codes    []ErrorCode
}

// V1 returns version 1. Its tables have the stable schema v1 and, marked as unstable, additional parts of the unstable
// schema.
func V1() *Version { return v1() }

// V2 returns version 2, as of the preview of its specification.
func V2() *Version { return v2() }

var (
	v1 = sync.OnceValue(func() *Version { return embedded(1) })
	v2 = sync.OnceValue(func() *Version { return embedded(2) })
)

func embedded(number int) *Version {
	dir := fmt.Sprint("v", number)
	files, err := fs.Sub(tables, dir)
	if err != nil {
		panic(err)
	}
	v, err := compile(number, files, "unstable.txt")
	if err != nil {
		panic("schema: embedded table " + dir + "/" + err.Error())
	}
	return v
}

// Number returns the version number in initialize.
func (v *Version) Number() int { return v.number }

// Method is the description of one method.
type Method struct {
	Name      string
	Direction Direction
	// Request says that the method may be sent with an id, and Notification that it may be sent without one.
	Request, Notification bool
	// Gate is the capability that the receiver must have advertised, as a path
	// of Advertised; "" if the method is always available.
	Gate   string
	Stable bool
	// Params and Result are the names of the method's types; Result is "" for a notification.
	Params, Result string
}

type method struct {
	Method
	params, result ref
}

// Method returns the method with the given name. It returns false for an unknown method, and for an extension method,
// whose name begins with "_".
func (v *Version) Method(name string) (Method, bool) {
	if m, ok := v.methods[name]; ok {
		return m.Method, true
	}
	return Method{}, false
}

// Methods returns all methods in the order of the tables.
func (v *Version) Methods() []Method {
	return lists.Map(v.order, func(name string) Method { return v.methods[name].Method })
}

// Update describes a kind of session/update.
type Update struct {
	Kind string // the value of sessionUpdate
	Type string
	// Content says that the update is part of the conversation, so that its place among other updates matters. Other
	// updates report a state, and only the latest report of a state counts.
	Content bool
	Gate    string // see Method
	Stable  bool
}

// Updates returns all kinds of session/update, the stable ones first.
func (v *Version) Updates() []Update {
	return lists.Map(v.shapes["SessionUpdate"].variants, func(u variant) Update {
		return Update{Kind: u.tag, Type: u.name, Content: u.content, Gate: u.gate, Stable: !u.unstable}
	})
}

// Update returns the kind of session/update with the given name. It returns false if there is none.
func (v *Version) Update(kind string) (Update, bool) {
	return lists.Find(v.Updates(), func(u Update) bool { return u.Kind == kind })
}

// Variant is one form of a union, such as the image of a ContentBlock.
type Variant struct {
	Tag    string // "" in a union without a tag
	Type   string
	Gate   string // see Method
	Stable bool
}

// Variants returns the forms of a union type. It returns nil for any other type.
func (v *Version) Variants(typeName string) []Variant {
	s := v.shapes[typeName]
	if s == nil || s.kind != union && s.kind != choice {
		return nil
	}
	return lists.Map(s.variants, func(u variant) Variant {
		return Variant{Tag: u.tag, Type: u.name, Gate: u.gate, Stable: !u.unstable}
	})
}

// Enum returns the values of an enum such as StopReason or ToolKind, in the order of the schema. It returns nil if no
// enum has the name. open says that other values are allowed too; values that implementers add begin with "_".
func (v *Version) Enum(typeName string) (values []string, open bool) {
	s := v.shapes[typeName]
	if s == nil || s.kind != enum {
		return nil, false
	}
	return slices.Clone(s.values), s.open
}

// ErrorCode is an error code with its meaning.
type ErrorCode struct {
	Code    int
	Meaning string // such as "method not found"
}

// ErrorCodes returns the codes to which JSON-RPC and the protocol give a meaning.
func (v *Version) ErrorCodes() []ErrorCode { return slices.Clone(v.codes) }

// ErrorMeaning returns the meaning of a code, or "" for an unknown code.
func (v *Version) ErrorMeaning(code int) string {
	if i := slices.IndexFunc(v.codes, func(known ErrorCode) bool { return known.Code == code }); i >= 0 {
		return v.codes[i].Meaning
	}
	return ""
}

// Types returns the names of all types that Check knows, sorted.
func (v *Version) Types() []string {
	return slices.Sorted(maps.Keys(v.shapes))
}

// StableType reports whether a type with the given name exists and is stable.
func (v *Version) StableType(name string) bool {
	return v.shapes[name] != nil && !v.unstable[name]
}
