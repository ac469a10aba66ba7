package fakellm_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/acp-test/acp-test/fakellm"
	"github.com/acp-test/acp-test/mistake"
)

// Whatever stands in a script, the parser says what is wrong, and where.
func FuzzParseScript(f *testing.F) {
	for _, src := range append(good, bad...) {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		_, err := fakellm.ParseScript("llm.yaml", []byte(src), nil)
		var e *mistake.Mistake
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Message == "") {
			t.Errorf("got %#v, want a mistake with a line", err)
		}
	})
}

// Whatever a client sends, it gets an answer in time.
func FuzzServe(f *testing.F) {
	script, err := fakellm.ParseScript("llm.yaml", []byte(everything), nil)
	if err != nil {
		f.Fatal(err)
	}
	s, err := fakellm.Start(fakellm.Config{Script: script, Prompts: []fakellm.Prompt{{Index: 1, Text: "hi"}}})
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	for i, e := range endpoints {
		f.Add(i, e.body(true, "hi"))
		f.Add(i, e.body(false, "hi", "ho"))
		f.Add(i, strings.Replace(e.body(false, "hi"), "{",
			`{"tools":[{"name":"a","type":"function","function":{"name":"Write","parameters":{"type":"object",`+
				`"properties":{"file":{"$ref":"#/x"}}}}}],`, 1))
		f.Add(i, `{"model":"m","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema",`+
			`"json_schema":{"schema":{"anyOf":[{"$ref":"#"},{"type":"array","minItems":3,"items":{"type":["null",`+
			`"string"]}}]}}}}`)
	}
	f.Fuzz(func(t *testing.T, which int, body string) {
		e := endpoints[uint(which)%uint(len(endpoints))]
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, e.url("", true), strings.NewReader(body)))
		if w.Code != 200 && (w.Code < 400 || w.Code > 499) {
			t.Errorf("got status %d, want an answer or the client's error", w.Code)
		}
	})
}
