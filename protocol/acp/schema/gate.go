package schema

import "github.com/acp-test/acp-test/wire"

// rememberedPaths bounds the capabilities that are read from one message.
const rememberedPaths = 1 << 10

// Advertised returns the paths of the capabilities in a member of the params or of the result
// of initialize, as gates name them. A capability is there if it is true or an object, even an
// empty one; null, false and absence at any level mean no.
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
