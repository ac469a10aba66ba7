package yamlfile_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
)

type thing struct {
	Name  string            `yaml:"name"`
	Words []string          `yaml:"words"`
	Env   map[string]string `yaml:"env"`
	On    bool              `yaml:"on"`
	N     int               `yaml:"n"`
	For   time.Duration     `yaml:"for"`
	Parts []part            `yaml:"parts"`
	Any   map[string]any    `yaml:"any"`
}

type part struct {
	At *yamlfile.Node `yaml:"at"`
}

func decode(src string) (t thing, err error) {
	defer mistake.Catch(&err)
	root, err := yamlfile.Parse("f", []byte(src))
	if err != nil {
		return t, err
	}
	root.Decode(&t, "a thing", "")
	return t, nil
}

func TestStylesMeanTheSame(t *testing.T) {
	g := NewWithT(t)
	block, err := decode("name: &n a\nwords: [b, *n]\nenv: &e\n  A: 1\n  B: 0x10\non: true\nn: 3\nfor: 20s\nparts:\n" +
		"  - at: x\nany:\n  <<: *e\n  A: !!str 2\n")
	g.Expect(err).NotTo(HaveOccurred())
	flow, err := decode("{name: &n a, words: [b, *n], env: &e {A: 1, B: 0x10}, on: true, n: 3, for: 20s, parts: " +
		"[{at: x}], any: {<<: *e, A: !!str 2}}")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(flow.Parts[0].At.Text).To(Equal("x"))
	flow.Parts, block.Parts = nil, nil
	g.Expect(flow).To(Equal(block))
	g.Expect(flow.Words).To(Equal([]string{"b", "a"}))
	g.Expect(flow.Env).To(Equal(map[string]string{"A": "1", "B": "0x10"}))
	g.Expect(flow.Any).To(Equal(map[string]any{"A": "2", "B": int64(16)}))
}

func TestMistakes(t *testing.T) {
	for src, want := range map[string]string{
		"nmae: x":            `f:1:1: unknown key "nmae" in a thing (did you mean "name"?)`,
		"words: {a: b}":      `f:1:8: words must be a list, not a mapping`,
		"words: 3":           `f:1:8: words must be a list, not 3`,
		"env: x":             `f:1:6: env must be a mapping, not "x"`,
		"on: 1":              `f:1:5: on must be true or false, not 1`,
		"n: -1":              `f:1:4: n must be a whole number of at least 0, not -1`,
		"for: x":             `f:1:6: for must be a duration such as 20s or 1m30s, not "x"`,
		"parts: x":           `f:1:8: parts must be a list, not "x"`,
		"parts:\n  - {a: b}": `f:2:6: unknown key "a" in an item of parts (did you mean "at"?)`,
		"name: *x":           `f:1:7: there is no anchor &x before this alias`,
		"<<: 1\nname: x":     `f:1:1: << takes a mapping or a list of mappings, not 1`,
		"- a": `f:1:1: a thing must be a mapping, not a list (keys: name, words, env, on, n, for, ` +
			`parts, any)`,
		"name: a\n---\nname: b": `f:3:1: a second document begins here, and acp-test reads only one`,
		"name: a\nname: b":      `f:2:1: mapping key "name" already defined at [1:1]`,
	} {
		_, err := decode(src)
		NewWithT(t).Expect(err).To(MatchError(want), src)
	}
}

func TestSource(t *testing.T) {
	g := NewWithT(t)
	root, err := yamlfile.Parse("f",
		[]byte("# top\na: 1 # one\nlist:\n  # first\n  - x: |\n      - y\n\n    z: 2\n    # below\n"+
			"  - {x: 'q', y: [1, no]}\nb: &m {k: v}\nc: *m\n"))
	g.Expect(err).NotTo(HaveOccurred())
	list := root.Field("list")
	g.Expect(list.Lead()).To(Equal([]string{"# first"}))
	g.Expect(list.Items[0].Source()).To(Equal("x: |\n  - y\n\nz: 2\n# below"))
	g.Expect(list.Items[1].Source()).To(Equal("x: q\ny: [1, \"no\"]"))
	g.Expect(root.Beside("list", "b")).To(Equal("# top\na: 1 # one\nc: {k: v}"))
}
