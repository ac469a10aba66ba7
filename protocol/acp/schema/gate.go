package schema

import "github.com/acp-test/acp-test/wire"

// rememberedPaths is the maximum number of capabilities read from one message.
const rememberedPaths = 1 << 10

// Advertised returns the capabilities in a member of the params or of the result of initialize, as paths in the
// notation of Method.Gate. A capability counts if it is true or an object, even an empty one. It does not count if it,
// or an object that contains it, is null, false or missing.
func Advertised(from wire.Value, member string) map[string]bool {
	paths := map[string]bool{}
	var add func(v wire.Value, path string)
	add = func(v wire.Value, path string) {
		on, _ := v.Bool()
		if len(paths) >= rememberedPaths || !on && v.Kind() != wire.Object {
			return
		}
		paths[path] = true
		for name, inner := range v.Members() {
			add(inner, path+"."+name)
		}
	}
	add(from.Get(member), member)
	return paths
}
