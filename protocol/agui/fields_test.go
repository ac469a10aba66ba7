package agui_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/protocol/agui"
)

// described are the types that the page knows, as it reads them.
func described(t *testing.T) (types map[string]struct {
	Fields, Forms [][]string
	By            string
}) {
	t.Helper()
	raw, err := json.Marshal(agui.Fields().Types)
	if err == nil {
		err = json.Unmarshal(raw, &types)
	}
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// Each type that a member has is there, and each statement names where it stands.
func TestFields(t *testing.T) {
	f, types := agui.Fields(), described(t)
	known := func(expression string) bool {
		name := strings.TrimSuffix(expression, "[]")
		_, ok := types[name]
		return ok || name == strings.ToLower(name) || strings.ToUpper(name) == name // a value, or a kind of JSON
	}
	for name, d := range types {
		for _, part := range append(slices.Clone(d.Fields), d.Forms...) {
			if !known(part[1]) {
				t.Errorf("%s has %v, whose type nothing describes", name, part)
			}
		}
	}
	for method, name := range f.Whole {
		if _, ok := types[name]; !ok {
			t.Errorf("%s is %s, which nothing describes", method, name)
		}
	}
	if f.Whole["RUN_FINISHED"] != "RunFinishedEvent" || f.Whole["THINKING_START"] != "" {
		t.Errorf("the types of events are %v", f.Whole)
	}
	cites := regexp.MustCompile(`^\S+#\S* ".+"$`)
	ids := map[string]bool{}
	for _, s := range f.Statements {
		if ids[s[0]] = true; !cites.MatchString(s[3]) {
			t.Errorf("%s cites %q", s[0], s[3])
		}
	}
	for _, key := range []string{"RUN_FINISHED", "pendingToolCallIds", "TextMessageContentEvent.delta"} {
		if len(f.Says[key]) == 0 {
			t.Errorf("nothing is said of %s", key)
		}
	}
	// The table of what requirements are about names what there is.
	text, err := os.ReadFile("says.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.Fields(line)
		if parts[0] == "#" {
			continue
		}
		name, member, _ := strings.Cut(parts[0], ".")
		if !slices.ContainsFunc(types[name].Fields,
			func(m []string) bool { return strings.TrimSuffix(m[0], "?") == member }) {
			t.Errorf("says.txt: %s has no %s", name, member)
		}
		for _, id := range parts[1:] {
			if !ids["AGUI-"+id] {
				t.Errorf("says.txt: %s is no requirement", id)
			}
		}
	}
}

// The types that the page describes are those of the official schemas: their members, which of them may be left
// out, what each is, and the forms.
func TestFieldsAgreeWithTheOfficialSchemas(t *testing.T) {
	installed(t)
	list := exec.Command("node", "types.mjs")
	list.Dir, list.Stderr = officialDir, os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var official map[string]struct {
		Members [][]string
		Forms   []string
	}
	if err := json.Unmarshal(out, &official); err != nil {
		t.Fatal(err)
	}
	types := described(t)
	is := func(kind string) string { // of ours, as types.mjs says it
		switch {
		case strings.HasSuffix(kind, "[]"):
			return "array"
		case kind == "Content" || len(types[kind].Forms) > 0:
			return "one of"
		case len(types[kind].Fields) > 0:
			return "object"
		}
		return kind
	}
	for name, ours := range types {
		theirs, there := official[name]
		if !there {
			if name != "Content" { // a text or a list of parts, without a name
				t.Errorf("%s is no type of the official schemas", name)
			}
			continue
		}
		var members, want []string
		for _, m := range ours.Fields {
			members = append(members, m[0]+" "+is(m[1]))
		}
		for _, m := range theirs.Members {
			kind := m[1]
			if i := slices.IndexFunc(ours.Fields, func(o []string) bool { return o[0] == m[0] }); i >= 0 &&
				(kind == "any" || m[0] == "state?") {
				kind = is(ours.Fields[i][1]) // which a function of theirs checks
			}
			want = append(want, m[0]+" "+kind)
		}
		if name == "ReasoningEncryptedValueEvent" { // which version 1.1 of the specification has, and their 1.0 not yet
			want = append(want, "encryptedValueType? string")
		}
		slices.Sort(members)
		slices.Sort(want)
		if !slices.Equal(members, want) {
			t.Errorf("%s has\n%v\nand the official one\n%v", name, members, want)
		}
		var tags []string
		for _, form := range ours.Forms {
			tags = append(tags, form[0])
		}
		slices.Sort(tags)
		slices.Sort(theirs.Forms)
		if !slices.Equal(tags, theirs.Forms) {
			t.Errorf("%s has the forms %v, and the official one %v", name, tags, theirs.Forms)
		}
	}
}
