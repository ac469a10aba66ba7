package invariants

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/rules"
	"github.com/acp-test/acp-test/wire"
)

// given is a prompt, together with the parts of it that the model has got.
type given struct {
	seq    int
	asked  bool    // the agent sent a model request for it
	judged bool    // the history in its first model request was checked
	failed bool    // the model failed in the turn
	latest int     // number of its latest model request
	called callSet // tool calls in its latest model request
	blocks []givenBlock
	said   strings.Builder // text of the model's latest reply in this turn
}

type givenBlock struct {
	point   string
	what    string
	needles []string // texts that identify the block; one of them is enough
	reached bool
	escaped bool // it reached the model only with entities for some characters
	// told says that an earlier prompt had the same block. stale says that the first model request of the turn has it
	// only before the model's latest reply to an earlier prompt.
	told, stale bool
}

// has reports whether a prompt has a block like b that reached the model.
func (g *given) has(b *givenBlock) bool {
	return slices.ContainsFunc(g.blocks, func(x givenBlock) bool {
		return x.reached && x.point == b.point && !x.media() && x.needles[0] == b.needles[0]
	})
}

// wholeText is how many bytes an embedded text may have that every agent has to pass on whole. An agent may shorten a
// longer one.
const wholeText = 2 << 10

// add adds a content block to g if the agent supports its type.
func (w *contextWatch) add(g *given, of *conn, b wire.Value) {
	takes := func(kind string) bool { return of.has(rules.OfAgent, w.gates[kind]) }
	var block givenBlock
	switch kind := b.Get("type").Str(); {
	case kind == "text":
		block = givenBlock{point: "text", what: "the text", needles: []string{bare(b.Get("text").Str())}}
	case kind == "resource_link":
		block = givenBlock{point: "link", what: "the link", needles: names(b)}
	case kind == "resource" && takes(kind):
		text := bare(b.Path("resource.text").Str())
		point := pick(len(text) > wholeText, "long-resource", "resource")
		block = givenBlock{point: point, what: "the embedded text", needles: []string{text}}
	case kind == "image" && takes(kind):
		block = givenBlock{point: "image", what: "the image", needles: []string{head(b.Get("data").Str()), "image"}}
	case kind == "audio" && takes(kind):
		block = givenBlock{point: "audio", what: "the recording", needles: []string{head(b.Get("data").Str()), "audio"}}
	}
	block.needles = slices.DeleteFunc(block.needles, func(s string) bool { return s == "" })
	if len(block.needles) > 0 {
		g.blocks = append(g.blocks, block)
	}
}

// apart removes needles that several links of the prompt share, such as a common name. A link keeps its needles if it
// shares all of them.
func (g *given) apart() {
	seen := map[string]int{}
	for _, b := range g.links() {
		for text := range lists.Set(b.needles) {
			seen[text]++
		}
	}
	for _, b := range g.links() {
		if own := lists.Where(b.needles, func(text string) bool { return seen[text] == 1 }); len(own) > 0 {
			b.needles = own
		}
	}
}

// links returns the links among the blocks.
func (g *given) links() (all []*givenBlock) {
	for i := range g.blocks {
		if g.blocks[i].point == "link" {
			all = append(all, &g.blocks[i])
		}
	}
	return all
}

// names returns the texts that identify a link: its URI, the path of its file, the last two parts of that path, the
// last part alone, its name and its title. An agent may write a fragment such as #L1 in another way.
func names(b wire.Value) []string {
	uri := b.Get("uri").Str()
	plain, _, _ := strings.Cut(uri, "#")
	texts := []string{uri, b.Get("name").Str(), b.Get("title").Str()}
	decoded, _ := url.PathUnescape(plain) // "" if it is no valid URI
	for _, at := range []string{plain, decoded} {
		if file := strings.TrimPrefix(at, "file://"); file != "" {
			last := path.Base(file)
			texts = append(texts, file, path.Join(path.Base(path.Dir(file)), last), last)
		}
	}
	return lists.Map(texts, bare)
}

// head returns the first 64 bytes of encoded data, which identify the data. An agent that scales a picture changes
// them.
func head(data string) string { return data[:min(len(data), 64)] }

// reach marks the blocks that a model request contains.
func (w *contextWatch) reach(g *given, said, raw string) {
	for i := range g.blocks {
		b := &g.blocks[i]
		at := b.in(said, raw)
		if b.reached = b.reached || at >= 0; at == 0 && b.media() {
			b.needles = b.needles[:1] // the data arrived unchanged, so later requests must have the data too
		}
	}
}

// entities writes the characters that markup needs as entities.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escapes records which embedded texts a model request has only with entities.
func (g *given) escapes(a fakellm.Asked) {
	var plain strings.Builder
	for i := range g.blocks {
		b := &g.blocks[i]
		if b.point != "resource" && b.point != "long-resource" {
			continue
		}
		if plain.Len() == 0 {
			for _, p := range a.Conversation() {
				plain.WriteString(bare(p.Text))
			}
		}
		text := b.needles[0]
		b.escaped = !strings.Contains(plain.String(), text) && strings.Contains(plain.String(), entities.Replace(text))
	}
}

func (b *givenBlock) media() bool { return b.point == "image" || b.point == "audio" }

// in returns the index of the first needle that a request contains, or -1. It looks for pictures and sounds in the raw
// request, and for other blocks in the request's texts.
func (b *givenBlock) in(said, raw string) int {
	in := pick(b.media(), raw, said)
	return slices.IndexFunc(b.needles, func(s string) bool {
		return strings.Contains(in, s) || strings.Contains(in, unescaped(s))
	})
}
