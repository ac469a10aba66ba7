package wire_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/acp-test/acp-test/wire"
)

func parsed(text string) wire.Value {
	GinkgoHelper()
	v, err := wire.Parse([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	return v
}

var _ = Describe("Parse", func() {
	DescribeTable("knows the kinds", func(text string, want wire.Kind) {
		Expect(parsed(text).Kind()).To(Equal(want))
	},
		Entry(nil, " null ", wire.Null), Entry(nil, "true", wire.Bool), Entry(nil, "false", wire.Bool),
		Entry(nil, "-0.5e+3", wire.Number), Entry(nil, `"a"`, wire.String), Entry(nil, "[]", wire.Array),
		Entry(nil, "\t{ }\r\n", wire.Object))

	It("gives the exact bytes of every value", func() {
		v := parsed(`{"a": [1, 2.50 ,{"b" : null}] , "c":"\u00e9"}`)
		Expect(string(v.Get("a").Raw())).To(Equal(`[1, 2.50 ,{"b" : null}]`))
		Expect(string(v.Path("a.1").Raw())).To(Equal("2.50"))
		Expect(string(v.Path("a.2").Raw())).To(Equal(`{"b" : null}`))
		Expect(v.Path("a.2").Offset()).To(Equal(16))
		Expect(string(v.Get("c").Raw())).To(Equal(`"\u00e9"`))
		Expect(v.Get("c").Text()).To(Equal("é"))
		Expect(v.Path("a.1").Text()).To(Equal("2.50"))
	})

	It("keeps numbers of any size", func() {
		huge := "1" + strings.Repeat("0", 5000)
		v := parsed("[" + huge + ", 9223372036854775807, 9223372036854775808, 1.0, -12]")
		Expect(string(v.Path("0").Raw())).To(Equal(huge))
		_, ok := v.Path("0").Int()
		Expect(ok).To(BeFalse())
		n, ok := v.Path("1").Int()
		Expect(n).To(Equal(int64(9223372036854775807)))
		Expect(ok).To(BeTrue())
		_, ok = v.Path("2").Int()
		Expect(ok).To(BeFalse())
		_, ok = v.Path("3").Int()
		Expect(ok).To(BeFalse(), "a number written with a fraction is no Int")
		Expect(v.Path("3").Whole()).To(BeFalse())
		Expect(v.Path("0").Whole()).To(BeTrue())
		f, ok := v.Path("3").Float()
		Expect(f).To(Equal(1.0))
		Expect(ok).To(BeTrue())
		n, _ = v.Path("4").Int()
		Expect(n).To(Equal(int64(-12)))
		_, ok = v.Path("0").Float()
		Expect(ok).To(BeFalse())
	})

	It("lets the last of equal keys win, however they are escaped", func() {
		v := parsed(`{"id":1,"x":0,"\u0069d":2}`)
		Expect(v.Get("id").Text()).To(Equal("2"))
		Expect(v.Len()).To(Equal(3))
		var keys []string
		for key := range v.Members() {
			keys = append(keys, key)
		}
		Expect(keys).To(Equal([]string{"id", "x", "id"}))
	})

	It("finds the path that leads to a value", func() {
		v := parsed(`{"a":[1,{"b":[[],2]}],"c":null}`)
		for _, path := range []string{"", "a", "a.0", "a.1", "a.1.b", "a.1.b.0", "a.1.b.1", "c"} {
			got, ok := v.PathTo(v.Path(path))
			Expect(ok).To(BeTrue())
			Expect(got).To(Equal(path))
		}
		for key, value := range v.Get("a").Path("1").Fields() {
			got, _ := v.PathTo(key)
			Expect(got).To(Equal("a.1.b"), "a key has the path of its value")
			got, _ = v.Get("a").PathTo(value)
			Expect(got).To(Equal("1.b"))
		}
		_, ok := v.Get("a").PathTo(v.Get("c"))
		Expect(ok).To(BeFalse())
		_, ok = v.PathTo(parsed("1"))
		Expect(ok).To(BeFalse())
	})

	It("answers every question about a missing value", func() {
		var v wire.Value
		Expect(v.Kind()).To(Equal(wire.Missing))
		Expect(v.Get("a").Path("b.0.c").Exists()).To(BeFalse())
		Expect(v.Raw()).To(BeNil())
		Expect(v.Str() + v.Text()).To(BeEmpty())
		Expect(v.Is("")).To(BeFalse())
		Expect(v.Len()).To(BeZero())
		Expect(v.LoneSurrogate()).To(BeFalse())
		for range v.Items() {
			Fail("a missing value has no items")
		}
		Expect(parsed(`[1]`).Path("-1").Exists()).To(BeFalse())
		Expect(parsed(`[1]`).Path("x").Exists()).To(BeFalse())
		Expect(parsed(`[1]`).Path("1").Exists()).To(BeFalse())
		Expect(parsed(`{"a":{"b":1}}`).Path("a.b.c").Exists()).To(BeFalse())
	})

	DescribeTable("decodes strings", func(text, want string) {
		v := parsed(text)
		Expect(v.Str()).To(Equal(want))
		Expect(v.Is(want)).To(BeTrue())
		Expect(v.Is(want + "x")).To(BeFalse())
		Expect(v.Is("x" + want)).To(BeFalse())
		Expect(v.Len()).To(Equal(len(want)))
	},
		Entry(nil, `""`, ""),
		Entry(nil, `"plain text of more than eight bytes"`, "plain text of more than eight bytes"),
		Entry(nil, `"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"),
		Entry(nil, `"\u0041\u00e9\u20AC"`, "Aé€"),
		Entry(nil, `"a pair: \ud83d\ude00."`, "a pair: 😀."),
		Entry(nil, `"\ud83d"`, "\uFFFD"),
		Entry(nil, `"\ud83dx\ude00"`, "\uFFFDx\uFFFD"),
		Entry(nil, `"\ud83d\ud83d\ude00"`, "\uFFFD😀"),
		Entry(nil, `"日本語のテキスト"`, "日本語のテキスト"))

	It("finds lone surrogates in values and keys, and nowhere else", func() {
		v := parsed(`{"good":"\ud83d\ude00","bad":["\ude00"],"\ud800":1}`)
		Expect(v.LoneSurrogate()).To(BeTrue())
		Expect(v.Get("good").LoneSurrogate()).To(BeFalse())
		Expect(v.Get("bad").LoneSurrogate()).To(BeTrue())
		Expect(v.Path("bad.0").LoneSurrogate()).To(BeTrue())
		Expect(parsed(`{"\ud800":1}`).LoneSurrogate()).To(BeTrue())
	})

	DescribeTable("says what is wrong and where", func(text, message string, offset int) {
		_, err := wire.Parse([]byte(text))
		var syntax *wire.SyntaxError
		Expect(errors.As(err, &syntax)).To(BeTrue(), "got %v", err)
		Expect(syntax.Msg).To(Equal(message))
		Expect(syntax.Offset).To(Equal(offset))
	},
		Entry(nil, "", "no JSON value", 0),
		Entry(nil, " \n", "no JSON value", 2),
		Entry(nil, `{"a":1`, "JSON text ends too early", 6),
		Entry(nil, `{"a":1,}`, "invalid character '}' where a key in quotes should begin", 7),
		Entry(nil, `{"a" 1}`, "invalid character '1' where ':' should follow a key", 5),
		Entry(nil, `{"a":1]`, "invalid character ']' where ',' or '}' should follow in an object", 6),
		Entry(nil, `[1}`, "invalid character '}' where ',' or ']' should follow in an array", 2),
		Entry(nil, `[1,]`, "invalid character ']' where a value should begin", 3),
		Entry(nil, `01`, "invalid character '1' after the end of the JSON text", 1),
		Entry(nil, `-`, "JSON text ends inside a number", 1),
		Entry(nil, `1.x`, "invalid character 'x' in a number, where a digit should be", 2),
		Entry(nil, `1e+`, "JSON text ends inside a number", 3),
		Entry(nil, `nul`, "JSON text ends too early", 3),
		Entry(nil, `trye`, "invalid character 'y' in the word true", 2),
		Entry(nil, `"abc`, "JSON text ends inside a string", 4),
		Entry(nil, `"abc\`, "JSON text ends inside a string", 5),
		Entry(nil, `"\u12`, "JSON text ends inside a string", 5),
		Entry(nil, `"\u12zz"`, `\u without four hexadecimal digits in a string`, 1),
		Entry(nil, `"\x41"`, "invalid character 'x' in an escape of a string", 2),
		Entry(nil, "\"a\x01b\"", "control character 0x01 unescaped in a string", 2),
		Entry(nil, "\"a\xff\"", "invalid UTF-8 in a string", 2),
		Entry(nil, "\"\xed\xa0\x80\"", "invalid UTF-8 in a string", 1),
		Entry(nil, "\xff", "invalid UTF-8 byte 0xff where a value should begin", 0),
		Entry(nil, `{} x`, "invalid character 'x' after the end of the JSON text", 3),
		Entry(nil, "[\u00a01]", "invalid character '\\u00a0' where a value should begin", 1))

	It("limits the nesting, not the stack", func() {
		deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
		Expect(parsed(deep).Kind()).To(Equal(wire.Array))
		_, err := wire.Parse([]byte("[" + deep + "]"))
		Expect(err).To(MatchError("nesting deeper than 10,000 at byte 10000"))
		_, err = wire.Parse([]byte(strings.Repeat(`{"a":`, 5_000_000)))
		Expect(err).To(HaveOccurred())
		wide := "[" + strings.Repeat("[],{},", 20_000) + "0]"
		Expect(parsed(wide).Len()).To(Equal(40_001))
	})

	It("gives a large table back, and refuses one that is too large", func() {
		var d wire.Doc
		many := []byte("[" + strings.Repeat("0,", 16_777_216) + "0]")
		Expect(d.Parse(many)).To(MatchError(ContainSubstring("more than 16,777,216 values")))
		Expect(d.Parse(many[:0])).NotTo(Succeed())
		Expect(d.Parse([]byte("[1]"))).To(Succeed())
		Expect(d.Root().Len()).To(Equal(1))
	})

	It("is missing its root after a text that failed, and works again", func() {
		var d wire.Doc
		Expect(d.Root().Exists()).To(BeFalse())
		Expect(d.Parse([]byte(`{"a":1}`))).To(Succeed())
		Expect(d.Parse([]byte(`{"a":`))).NotTo(Succeed())
		Expect(d.Root().Exists()).To(BeFalse())
		Expect(d.Parse([]byte(`[2]`))).To(Succeed())
		Expect(string(d.Root().Raw())).To(Equal("[2]"))
	})

	It("allocates nothing when a Doc is used again", func() {
		text := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"a":[1,true,null,"x\ny"]}}`)
		var d wire.Doc
		Expect(d.Parse(text)).To(Succeed())
		Expect(testing.AllocsPerRun(100, func() {
			_ = d.Parse(text)
			if !d.Root().Path("params.a.3").Is("x\ny") {
				panic("wrong value")
			}
		})).To(BeZero())
	})

	It("agrees with encoding/json on what it decodes", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			s := rapid.String().Draw(t, "s")
			text, err := json.Marshal(map[string]any{"k": s, s: []any{1, s}})
			if err != nil {
				t.Fatal(err)
			}
			v, err := wire.Parse(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if s != "k" && v.Get("k").Str() != s || v.Get(s).Path("1").Str() != s {
				t.Fatalf("%s: got %q, want %q", text, v.Get(s).Path("1").Str(), s)
			}
			var back string
			if err := json.Unmarshal(wire.AppendString(nil, s), &back); err != nil || back != s {
				t.Fatalf("AppendString: got %q, want %q, error %v", back, s, err)
			}
		})
	})
})

var _ = Describe("AppendString", func() {
	It("escapes only what JSON requires", func() {
		Expect(string(wire.AppendString([]byte("x="), "a\"\\\x00\x1f\n\r\té😀</\u2028"))).
			To(Equal("x=\"a\\\"\\\\\\u0000\\u001f\\n\\r\\té😀</\u2028\""))
		Expect(wire.Quote(`a"b`)).To(Equal(`"a\"b"`))
		Expect(string(wire.AppendString(nil, "a\xffb\xc3"))).To(Equal("\"a\uFFFDb\uFFFD\""))
	})
})

var texts = []string{
	`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text",` +
		`"text":"Hi"}]}}`,
	`[1,-2.5e-3,"\ud83d\ude00 é\u00e9\n",{"a":{}},[],[[]],true,false,null]`,
	"", " ", "nul", `"\u12`, "[1,]", `{"a":1,"a":2}`, "\xef\xbb\xbf{}", "\"\xff\"", `{"a":`, "01", "1.", "-", "1e5",
}

func FuzzParse(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := wire.Parse(text)
		want := json.Valid(text) && utf8.Valid(text)
		if got := err == nil; got != want {
			t.Fatalf("%q: got valid %v (%v), want %v", text, got, err, want)
		}
		if err != nil {
			var syntax *wire.SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(text) || v.Exists() {
				t.Fatalf("%q: got error %#v and value %v", text, err, v.Kind())
			}
			return
		}
		same(t, v)
	})
}

// same compares a value with what encoding/json makes of its raw bytes.
func same(t *testing.T, v wire.Value) {
	switch v.Kind() {
	case wire.String:
		var want string
		if err := json.Unmarshal(v.Raw(), &want); err != nil || v.Str() != want || !v.Is(want) {
			t.Fatalf("%q: got %q, want %q (%v)", v.Raw(), v.Str(), want, err)
		}
	case wire.Array:
		var want []json.RawMessage
		if err := json.Unmarshal(v.Raw(), &want); err != nil || v.Len() != len(want) {
			t.Fatalf("%q: got %d items, want %d (%v)", v.Raw(), v.Len(), len(want), err)
		}
		at := 0
		for item := range v.Items() {
			if !slices.Equal(item.Raw(), []byte(want[at])) {
				t.Fatalf("item %d of %q: got %q, want %q", at, v.Raw(), item.Raw(), want[at])
			}
			same(t, item)
			at++
		}
	case wire.Object:
		var want map[string]json.RawMessage
		if err := json.Unmarshal(v.Raw(), &want); err != nil {
			t.Fatal(err)
		}
		for key, raw := range want {
			if got := v.Get(key).Raw(); !slices.Equal(got, []byte(raw)) {
				t.Fatalf("member %q of %q: got %q, want %q", key, v.Raw(), got, raw)
			}
		}
		for key, value := range v.Members() {
			if _, ok := want[key]; !ok {
				t.Fatalf("%q: got a member %q that is not there", v.Raw(), key)
			}
			same(t, value)
		}
	}
}
