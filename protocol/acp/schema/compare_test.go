package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/protocol/acp/schema"
	"github.com/acp-test/acp-test/wire"
)

// fragments are types of the schema that are no values of their own. Ours are
// whole, and compared where the fragments are used.
var fragments = map[string]string{
	"AgentRequest":               "the envelope: package wire takes it apart",
	"AgentResponse":              "the envelope",
	"AgentNotification":          "the envelope",
	"ClientRequest":              "the envelope",
	"ClientResponse":             "the envelope",
	"ClientNotification":         "the envelope",
	"ExtRequest":                 "allows everything",
	"ExtResponse":                "allows everything",
	"ExtNotification":            "allows everything",
	"ProtocolVersion":            "uint16",
	"SessionConfigSelect":        "part of SessionConfigOption",
	"SessionConfigBoolean":       "part of SessionConfigOption",
	"ElicitationSessionScope":    "part of CreateElicitationRequest",
	"ElicitationRequestScope":    "part of CreateElicitationRequest",
	"ElicitationFormMode":        "part of CreateElicitationRequest",
	"ElicitationUrlMode":         "part of CreateElicitationRequest",
	"ErrorStopReason":            "part of IdleStateUpdate",
	"MessageMcpRequest":          "of mcp/message only the name is known to us",
	"MessageMcpResponse":         "the same",
	"MessageMcpNotification":     "the same",
	"McpError":                   "the same",
	"McpRequestId":               "the same",
	"ProxyRequest":               "of proxies only the names of the methods are known to us",
	"ProxyResponse":              "the same",
	"ProxyNotification":          "the same",
	"InitializeProxyRequest":     "the same",
	"InitializeProxyResponse":    "the same",
	"ProxySuccessorRequest":      "the same",
	"ProxySuccessorResponse":     "the same",
	"ProxySuccessorNotification": "the same",
}

// fragments2 are those of version 2.
var fragments2 = func() map[string]string {
	all := maps.Clone(fragments)
	all["DiffPathChange"] = "part of DiffChange"
	all["DiffPathPairChange"] = "part of DiffChange"
	all["ErrorData"] = "allows everything"
	return all
}()

// verdict is what we say about a value.
func verdict(v *schema.Version, typeName string, value any) (all []schema.Problem, valid bool) {
	GinkgoHelper()
	text, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	parsed, err := wire.Parse(text)
	Expect(err).NotTo(HaveOccurred())
	v.CheckType(typeName, parsed, func(p schema.Problem) { all = append(all, p) })
	valid = v.Fits(typeName, parsed)
	if !valid {
		Expect(all).NotTo(BeEmpty(), "%s does not fit %s, and nothing is said", text, typeName)
	}
	return all, valid
}

// meaning is a schema without its prose.
func meaning(node any) any {
	switch node := node.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range node {
			if _, prose := value.(string); !prose || key != "description" {
				out[key] = meaning(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(node))
		for i, item := range node {
			out[i] = meaning(item)
		}
		return out
	}
	return node
}

// damage compares what the marks of the schema say about a wrong value of each
// property with our severity, and returns the differences.
func damage(v *schema.Version, s *official, name string) (differences []string) {
	forms := s.forms(s.defs[name])
	for _, f := range forms {
		for _, prop := range slices.Sorted(maps.Keys(f.props)) {
			if slices.ContainsFunc(forms, func(f form) bool { return f.props[prop]["const"] != nil }) {
				continue // with another tag it is another type, and other things are wrong
			}
			whole := s.fill(f).(map[string]any)
			if !s.allows(name, whole) {
				continue
			}
			for _, wrong := range wrongs() {
				if object, ok := wrong.(map[string]any); ok && object["type"] != nil {
					continue // wrong inside, perhaps at a key that is lenient again
				}
				changed := maps.Clone(whole)
				changed[prop] = wrong
				if s.allows(name, changed) {
					continue
				}
				want := schema.Fatal
				if node := f.props[prop]; node["x-deserialize-default-on-error"] == true ||
					node["x-deserialize-default-on-null"] == true && wrong == nil {
					want = schema.Lossy
				}
				ours, _ := verdict(v, name, changed)
				worst := schema.Style
				for _, p := range ours {
					worst = min(worst, p.Severity)
				}
				if worst != want {
					text, _ := json.Marshal(changed)
					differences = append(differences,
						fmt.Sprintf("%s.%s: the schema says %v, we say %v: %s", name, prop, want, ours, text))
				}
			}
		}
	}
	return differences
}

var _ = Describe("the tables of version 1, beside the official schema", Ordered, func() {
	compareWith(schema.V1(), fragments, ownKeys)
})

var _ = Describe("the tables of version 2, beside the official schema", Ordered, func() {
	compareWith(schema.V2(), fragments2,
		map[string]string{"TitledMultiSelectItems.type": ownKeys["TitledMultiSelectItems.type"]})
})

// compareWith compares the tables of a version with the official schema of it.
func compareWith(v *schema.Version, fragments, ownKeys map[string]string) {
	var stable, unstable *official
	var differences []string

	BeforeAll(func() {
		stable, unstable = loadSchema(v.Number(), "schema.json"), loadSchema(v.Number(), "schema.unstable.json")
	})

	// compare notes a difference of verdicts. There is no list of exceptions:
	// on all types that both know they agree.
	compare := func(s *official, name string, value any) {
		ours, valid := verdict(v, name, value)
		if valid == s.allows(name, value) {
			return
		}
		text, _ := json.Marshal(value)
		differences = append(differences,
			fmt.Sprintf("%s: the schema says valid=%v, we say %v to %s", name, !valid, ours, text))
	}

	compareAll := func(s *official, names []string) {
		differences = nil
		for _, name := range names {
			if fragments[name] != "" {
				continue
			}
			def := s.defs[name]
			for _, wrong := range wrongs() {
				compare(s, name, wrong)
			}
			for _, f := range s.forms(def) {
				// Every property of every form: valid, absent, null, wrong.
				for range 3 {
					compare(s, name, s.fill(f))
				}
				for _, prop := range slices.Sorted(maps.Keys(f.props)) {
					whole, ok := s.fill(f).(map[string]any)
					Expect(ok).To(BeTrue())
					for _, wrong := range wrongs() {
						changed := maps.Clone(whole)
						changed[prop] = wrong
						compare(s, name, changed)
					}
					changed := maps.Clone(whole)
					delete(changed, prop)
					compare(s, name, changed)
				}
			}
			// And changes anywhere inside.
			for range 150 {
				value := s.mutate(s.value(def))
				if s.rng.IntN(3) == 0 {
					value = s.mutate(value)
				}
				compare(s, name, value)
			}
		}
		Expect(strings.Join(differences[:min(len(differences), 40)], "\n")).
			To(BeEmpty(), "%d differences", len(differences))
	}

	It("knows every type, and no other", func() {
		known := v.Types()
		for name := range unstable.defs {
			Expect(slices.Contains(known, name)).To(Equal(fragments[name] == ""), "type %s", name)
			if fragments[name] == "" {
				_, isStable := stable.defs[name]
				Expect(v.StableType(name)).To(Equal(isStable || promoted(v, name)), "type %s is stable", name)
			}
		}
		for name := range fragments {
			_, inSchema := unstable.defs[name]
			Expect(inSchema).To(BeTrue(), "the fragment %s is no longer in the schema", name)
		}
		for name := range stable.defs {
			Expect(unstable.defs).To(HaveKey(name))
		}
	})

	It("gives the verdict of the schema on every stable type", func() {
		compareAll(stable, slices.Sorted(maps.Keys(stable.defs)))
	})

	It("gives the verdict of the unstable schema on every type that differs there", func() {
		var differ []string
		for name, def := range unstable.defs {
			if !reflect.DeepEqual(meaning(def), meaning(stable.defs[name])) {
				differ = append(differ, name)
			}
		}
		slices.Sort(differ)
		compareAll(unstable, differ)
	})

	It("knows what is lost and what is refused", func() {
		var differences []string
		for _, name := range slices.Sorted(maps.Keys(unstable.defs)) {
			s := stable
			if s.defs[name] == nil {
				s = unstable
			}
			if fragments[name] == "" {
				differences = append(differences, damage(v, s, name)...)
			}
		}
		Expect(strings.Join(differences, "\n")).To(BeEmpty(), "mend the fields named here in protocol/acp/schema/v1")
	})

	It("knows every key, and tells the unstable ones apart", func() {
		for _, name := range slices.Sorted(maps.Keys(unstable.defs)) {
			if fragments[name] != "" {
				continue
			}
			was := map[string]bool{}
			if def, ok := stable.defs[name]; ok {
				for _, f := range stable.forms(def) {
					for prop := range f.props {
						was[prop] = true
					}
				}
			}
			for _, f := range unstable.forms(unstable.defs[name]) {
				for range 5 {
					value := unstable.fill(f)
					ours, _ := verdict(v, name, value)
					calledUnstable := false
					for _, p := range ours {
						Expect(p.Message).NotTo(HavePrefix("unknown key"), "%s.%s in %v", name, p.Path, value)
						calledUnstable = calledUnstable || p.Severity == schema.Unstable
					}
					object, _ := value.(map[string]any)
					for prop := range object {
						if _, isStable := stable.defs[name]; isStable && !was[prop] && !promoted(v, name+"."+prop) &&
							!f.promoted(v, name) {
							Expect(calledUnstable).To(BeTrue(), "%s.%s in %v", name, prop, value)
						}
					}
				}
			}
		}
	})

	It("has no key that the schema does not have", func() {
		known, seen := map[string]bool{}, map[string]bool{}
		for _, name := range v.Types() {
			def, ok := unstable.defs[name]
			if !ok {
				continue
			}
			clear(known)
			for _, f := range unstable.forms(def) {
				for prop := range f.props {
					known[prop] = true
				}
			}
			was := map[string]bool{}
			if def, ok := stable.defs[name]; ok {
				for _, f := range stable.forms(def) {
					for prop := range f.props {
						was[prop] = true
					}
				}
			}
			keys, more := v.Fields(name)
			for _, key := range append(slices.Clone(keys), more...) {
				seen[name+"."+key] = true
			}
			for _, key := range keys {
				if _, isStable := stable.defs[name]; isStable && !promoted(v, name+"."+key) {
					Expect(was[key]).To(Equal(ownKeys[name+"."+key] == ""), "stable key %s.%s", name, key)
				}
			}
			for _, key := range more {
				named := ownKeys[name+"."+key] != "" || schema.LatestNews().Touching(protocolOf(v), name+"."+key) != nil
				Expect(known[key] && !was[key]).To(Equal(!named), "unstable key %s.%s", name, key)
			}
		}
		for key := range ownKeys {
			Expect(seen).To(HaveKey(key), "own key that is gone")
		}
	})

	It("knows every method with its direction and types", func() {
		for name, def := range unstable.defs {
			methodName, ok := def["x-method"].(string)
			if !ok {
				continue
			}
			m, ok := v.Method(methodName)
			Expect(ok).To(BeTrue(), "method %s of %s", methodName, name)
			_, isStable := stable.defs[name]
			Expect(m.Stable).To(Equal(isStable), methodName)
			if fragments[name] != "" {
				continue
			}
			want := map[string]schema.Direction{"agent": schema.ToAgent, "client": schema.ToEditor,
				"protocol": schema.Both}[def["x-side"].(string)]
			Expect(m.Direction).To(Equal(want), methodName)
			Expect([]string{m.Params, m.Result}).To(ContainElement(name), methodName)
		}
	})

	It("has every value of every enum, in the order of the schema", func() {
		for name, def := range unstable.defs {
			var want []string
			open := false
			for _, key := range []string{"oneOf", "anyOf"} {
				for _, part := range sequence(def[key]) {
					part := part.(map[string]any)
					if c, ok := part["const"].(string); ok {
						want = append(want, c)
					} else if part["type"] == "string" {
						open = true
					}
				}
			}
			if len(want) == 0 {
				continue
			}
			got, gotOpen := v.Enum(name)
			Expect(got).To(Equal(want), name)
			Expect(gotOpen).To(Equal(open), name)
		}
	})

	It("knows the error codes", func() {
		var want []string
		for _, part := range sequence(stable.defs["ErrorCode"]["anyOf"]) {
			if c, ok := part.(map[string]any)["const"]; ok {
				want = append(want, fmt.Sprint(c))
			}
		}
		var got []string
		for _, code := range v.ErrorCodes() {
			got = append(got, fmt.Sprint(code.Code))
		}
		Expect(got).To(ConsistOf(want))
	})
}

// ownKeys are keys that we know, and neither the pinned schema nor news.yaml has.
var ownKeys = map[string]string{
	"AuthMethodAgent.type":        "any type but terminal means this form",
	"TitledMultiSelectItems.type": "allowed beside anyOf, as any other key, and usual in JSON Schema",
}
