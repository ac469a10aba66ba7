package grammar

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"maps"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/acp-test/acp-test/scenarios/script"
)

// silence is a WAV file without samples, in base64.
const silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

// dots returns pictures of one pixel in base64, by image type, for the types that models accept.
var dots = sync.OnceValue(func() map[string]string {
	dot, kinds := image.NewGray(image.Rect(0, 0, 1, 1)), map[string]func(*bytes.Buffer, image.Image) error{
		"png":  func(b *bytes.Buffer, dot image.Image) error { return png.Encode(b, dot) },
		"gif":  func(b *bytes.Buffer, dot image.Image) error { return gif.Encode(b, dot, nil) },
		"jpeg": func(b *bytes.Buffer, dot image.Image) error { return jpeg.Encode(b, dot, nil) },
	}
	all := map[string]string{"webp": "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"}
	for kind, encode := range kinds {
		var b bytes.Buffer
		if err := encode(&b, dot); err != nil {
			panic(err) // the memory has room
		}
		all[kind] = base64.StdEncoding.EncodeToString(b.Bytes())
	}
	return all
})

type object = map[string]any

// blocks has the shapes of prompts other than plain text. needs is the capability that a shape needs, or "".
var blocks = []struct {
	weight       int
	shape, needs string
	block        func(w *writer) object
}{
	{2, "two texts", "", func(w *writer) object { return object{"type": "text", "text": w.text()} }},
	{1, "line ends", "", func(w *writer) object { return object{"type": "text", "text": w.text() + "\r\nzwei\r\n"} }},
	{1, "long text", "", func(w *writer) object {
		size := pick(w.r, []int{200, 10_000, 100_000, 300_000}) // some are longer than the usual buffers of pipes and readers
		text := w.text() + " "
		return object{"type": "text", "text": strings.Repeat(text, 1+size/len(text))}
	}},
	{1, "empty text", "", func(*writer) object { return object{"type": "text", "text": ""} }},
	{1, "one byte", "", func(*writer) object { return object{"type": "text", "text": "x"} }},
	{2, "link", "", func(w *writer) object {
		if len(w.links) > 0 && w.one(3) {
			w.covered("prompt", "link told before")
			return maps.Clone(pick(w.r, w.links))
		}
		// Files of two folders may have one name.
		path := w.name("link") + pick(w.r, []string{".txt", "/notes.txt", " 100% ü.txt"})
		w.file(path, w.content())
		uri := (&url.URL{Path: path}).EscapedPath()
		link := object{"type": "resource_link", "uri": "file://$WORK/" + uri, "name": filepath.Base(path)}
		if w.one(3) {
			maps.Copy(link, object{"title": w.text(), "description": w.text(), "mimeType": "text/plain",
				"size": pick(w.r, []int{7, 70_000, 5_000_000})}) // only the address matters
		}
		if w.one(4) {
			link["uri"] = fmt.Sprintf("%s#L%s", link["uri"], pick(w.r, []string{"1", "2", "1-L2", "1:2", "2-L1", "2:1"}))
		}
		w.links = append(w.links, maps.Clone(link))
		return link
	}},
	{1, "link to a folder", "", func(w *writer) object {
		path := w.name("ordner")
		w.file(path+"/notes.txt", w.content())
		return object{"type": "resource_link", "uri": "file://$WORK/" + path, "name": path}
	}},
	{2, "link to what is no short text", "", func(w *writer) object {
		name, kind := w.name("anhang"), pick(w.r, []string{"png", "bin", "txt", "log"})
		switch path := name + "." + kind; kind {
		case "png":
			w.file(path+".base64", dots()[kind])
		case "bin":
			w.file(path+".base64", "AP/+gP8A")
		case "txt":
			w.file(path, longText(18_000))
		case "log":
			w.file(path, "")
		}
		return object{"type": "resource_link", "uri": "file://$WORK/" + name + "." + kind, "name": name + "." + kind}
	}},
	{2, "link elsewhere", "", func(w *writer) object {
		name := w.name("page")
		link := object{"type": "resource_link", "name": name,
			"uri": pick(w.r, []string{"https://docs.example.test/", "untitled:"}) + url.PathEscape(name)}
		if w.one(2) {
			link["mimeType"] = pick(w.r, []string{"image/png", "application/pdf", "text/html", "audio/wav"})
		}
		return link
	}},
	{2, "image", "promptCapabilities.image", func(w *writer) object {
		kind := pick(w.r, []string{"png", "png", "gif", "jpeg", "webp"})
		picture := object{"type": "image", "mimeType": "image/" + kind, "data": dots()[kind]}
		if w.one(3) {
			picture["uri"] = "file:///elsewhere/" + pick(w.r, []string{"bild", w.name("bild")}) + "." + kind
		}
		return picture
	}},
	{1, "audio", "promptCapabilities.audio", func(*writer) object {
		return object{"type": "audio", "mimeType": "audio/wav", "data": silence}
	}},
	{2, "embedded", "promptCapabilities.embeddedContext", func(w *writer) object {
		text := w.text() + pick(w.r, []string{"", "\nif a < b && c > d {}\n"})
		embedded := object{"uri": "file:///elsewhere/" + w.name("doc") + ".md", "text": text}
		if kind := pick(w.r, []string{"", "text/markdown", "application/json", "application/typescript"}); kind != "" {
			embedded["mimeType"] = kind
		}
		return object{"type": "resource", "resource": embedded}
	}},
	{1, "long embedded", "promptCapabilities.embeddedContext", func(w *writer) object {
		size, text := pick(w.r, []int{5_000, 20_000, 40_000}), w.text()+" "
		return object{"type": "resource", "resource": object{"uri": "file:///elsewhere/" + w.name("doc") + ".md",
			"mimeType": "text/markdown", "text": strings.Repeat(text, 1+size/len(text))}}
	}},
	{1, "embedded empty text", "promptCapabilities.embeddedContext", func(w *writer) object {
		return object{"type": "resource", "resource": object{"uri": "file:///elsewhere/" + w.name("doc") + ".md", "text": ""}}
	}},
	{1, "embedded bytes", "promptCapabilities.embeddedContext", func(w *writer) object {
		bytes := object{"uri": "file:///elsewhere/" + w.name("doc") + ".bin",
			"blob": base64.StdEncoding.EncodeToString([]byte(w.text()))}
		binary := "application/octet-stream"
		kind := pick(w.r, []string{binary, binary, "text/plain", "image/png", ""})
		if kind == "image/png" {
			bytes["blob"] = dots()["png"]
		}
		if kind != "" {
			bytes["mimeType"] = kind
		}
		return object{"type": "resource", "resource": bytes}
	}},
}

// prompt writes a prompt to a session. name is the name of the prompt's response in the script.
func (w *writer) prompt(c *convo, name string) {
	text, number := w.text(), w.n
	if c.again != "" && w.one(10) {
		text, number = c.again, c.number
		w.covered("prompt", "said before")
	}
	c.said, c.number, c.again = text, number, ""
	list, shape := []object{{"type": "text", "text": text}}, "text"
	if w.has("media") && !w.off("b") && w.one(3) {
		var can []weighted[int]
		for i, b := range blocks {
			can = append(can, weighted[int]{b.weight, i, b.needs != "" && !w.able(b.needs)})
		}
		i, _ := choose(w.r, can)
		shape = blocks[i].shape
		list = append(list, blocks[i].block(w))
		if w.one(3) {
			if w.one(2) { // else both blocks have the same shape
				i, _ = choose(w.r, can)
			}
			list = append(list, blocks[i].block(w))
			w.excerpts(list[1:])
			w.namesakes(list[1:])
		}
		list = w.arranged(list)
		if w.one(4) {
			pick(w.r, list)["annotations"] = object{"priority": w.priority()}
		}
	}
	var more script.Word
	if len(list) > 1 {
		more = script.Option("blocks", work(marshal(list)))
	}
	var meta script.Word
	if w.has("media") && !w.off("b") && w.one(8) {
		meta = script.Option("meta", script.Quote(`{"example.com/trace": "00-4bf92f35"}`))
	}
	c.before, c.latest = c.latest, name
	w.covered("prompt", shape)
	w.Add("prompt %s %s %s %s as %s", c.name, script.Quote(text), more, meta, name)
}

// priority returns a priority of a content block. Version 1 does not limit it to 1.
func (w *writer) priority() float64 {
	if !w.V2 && w.one(2) {
		return 2
	}
	return 0.7
}

// arranged sometimes puts the text of a prompt behind its other blocks.
func (w *writer) arranged(list []object) []object {
	if w.one(3) {
		w.covered("prompt", "text last")
		return append(list[1:len(list):len(list)], list[0])
	}
	return list
}

// excerpts sometimes gives two embedded texts of a prompt the same uri, as if they were two parts of one file.
func (w *writer) excerpts(two []object) {
	a, _ := two[0]["resource"].(object)
	b, _ := two[1]["resource"].(object)
	if a["text"] != nil && b["text"] != nil && w.one(2) {
		b["uri"] = a["uri"]
		w.covered("prompt", "two excerpts")
	}
}

// namesakes sometimes gives two links of a prompt the same name, as if two folders had a file of that name.
func (w *writer) namesakes(two []object) {
	if two[0]["type"] == "resource_link" && two[1]["type"] == "resource_link" && two[0]["uri"] != two[1]["uri"] {
		two[1]["name"] = two[0]["name"]
		w.covered("prompt", "two links of one name")
	}
}

// work returns a text as one quoted word, in which $WORK remains a variable.
func work(text string) script.Word {
	var parts []script.Word
	for i, part := range strings.Split(text, "$WORK") {
		if i > 0 {
			parts = append(parts, script.Variable("WORK"))
		}
		parts = append(parts, script.Quote(part))
	}
	return script.Join(parts...)
}
