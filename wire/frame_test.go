package wire_test

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/acp-test/acp-test/wire"
)

var _ = Describe("ClassifyLine", func() {
	var d wire.Doc

	DescribeTable("tells frames apart", func(line string, kind wire.FrameKind, id, method string) {
		f := wire.ClassifyLine(&d, []byte(line))
		Expect(f.Problem).To(BeEmpty())
		Expect(f.Kind).To(Equal(kind))
		Expect(f.ID).To(Equal(wire.ID(id)))
		Expect(f.Method).To(Equal(method))
	},
		Entry(nil, `{"jsonrpc":"2.0","id":7,"method":"m"}`, wire.Request, `7`, "m"),
		Entry(nil, `{"jsonrpc":"2.0","id":"7","method":"m","params":{}}`, wire.Request, `"7"`, "m"),
		Entry(nil, `{"jsonrpc":"2.0","id":null,"method":"m"}`, wire.Request, `null`, "m"),
		Entry(nil, `{"jsonrpc":"2.0","id":"\u0061\/","method":"m"}`, wire.Request, `"a/"`, "m"),
		Entry(nil, `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m"}`, wire.Request,
			`123456789012345678901234567890`, "m"),
		Entry(nil, `{"method":"\u006d","jsonrpc":"2.0"}`, wire.Notification, ``, "m"),
		Entry(nil, `{"jsonrpc":"2.0","id":1,"result":null}`, wire.Response, `1`, ""),
		Entry(nil, `{"jsonrpc":"2.0","id":1,"result":{},"extra":1}`, wire.Response, `1`, ""),
		Entry(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}`, wire.Response, `null`, ""),
		Entry(nil, "  {\"jsonrpc\":\"2.0\",\"method\":\"m\"} \t\r", wire.Notification, ``, "m"),
		Entry(nil, `{"jsonrpc":"1.0","jsonrpc":"2.0","method":"m"}`, wire.Notification, ``, "m"))

	DescribeTable("says in one sentence why a line is no frame", func(line, want string) {
		f := wire.ClassifyLine(&d, []byte(line))
		Expect(f.Kind).To(Equal(wire.Malformed))
		Expect(f.Problem).To(Equal(want))
	},
		Entry("empty", ``, `the line is empty`),
		Entry("white space", " \t\r", `the line is empty`),
		Entry("log line", `Loaded cached credentials.`,
			`the line is not JSON but other text; log lines belong on stderr: Loaded cached credentials.`),
		Entry("log line in colour", "\x1b[32mINFO\x1b[0m up",
			`the line is not JSON but other text; log lines belong on stderr: ·[32mINFO·[0m up`),
		Entry("log line in brackets", `[INFO] started`,
			`the line is not JSON but other text; log lines belong on stderr: [INFO] started`),
		Entry("log line with a date", `2026-01-02 started`,
			`the line is not JSON but other text; log lines belong on stderr: 2026-01-02 started`),
		Entry("LSP header", `Content-Length: 12`,
			`the line is not JSON but other text; log lines belong on stderr: Content-Length: 12`),
		Entry("long text", strings.Repeat("é", 100),
			`the line is not JSON but other text; log lines belong on stderr: `+strings.Repeat("é", 30)+"…"),
		Entry("number", `42`, `the line is a JSON number, but a JSON-RPC message must be an object`),
		Entry("batch", `[{"jsonrpc":"2.0","method":"m"}]`,
			`the line is a JSON array (a batch), but each message must be on its own line`),
		Entry("BOM", "\uFEFF{}", `the line begins with a byte order mark, which JSON does not allow`),
		Entry("binary", "\x80\x81", `the line is not text: it is not valid UTF-8`),
		Entry("bad UTF-8", "{\"a\":\"\xff\"}", `the line is not valid JSON: invalid UTF-8 in a string at byte 6`),
		Entry("cut off", `{"jsonrpc":"2.0","id`, `the line is cut off: JSON text ends inside a string at byte 20`),
		Entry("two messages", `{}{}`, `the line is not valid JSON: invalid character '{' after the end of the JSON `+
			`text at byte 2`),
		Entry("no jsonrpc", `{"id":1,"method":"m"}`, `the message has no "jsonrpc" member, which must be "2.0"`),
		Entry("wrong jsonrpc", `{"jsonrpc":2.0,"id":1,"method":"m"}`, `"jsonrpc" is 2.0, and must be "2.0"`),
		Entry("fraction", `{"jsonrpc":"2.0","id":1.5,"method":"m"}`,
			`the id is 1.5, and must be a string, an integer or null`),
		Entry("boolean id", `{"jsonrpc":"2.0","id":true,"method":"m"}`,
			`the id is true, and must be a string, an integer or null`),
		Entry("object id", `{"jsonrpc":"2.0","id":{},"result":1}`,
			`the id is {}, and must be a string, an integer or null`),
		Entry("method no string", `{"jsonrpc":"2.0","id":1,"method":null}`, `the method is null, and must be a string`),
		Entry("request and response", `{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`,
			`the message has a method like a request, but also a result or an error like a response`),
		Entry("both", `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`,
			`the response has both a result and an error, and must have exactly one`),
		Entry("error null", `{"jsonrpc":"2.0","id":1,"result":{},"error":null}`,
			`the response has a result and also "error": null; a successful response has no error member at all`),
		Entry("result null", `{"jsonrpc":"2.0","id":1,"result":null,"error":{}}`,
			`the response has an error and also "result": null; a failed response has no result member at all`),
		Entry("only error null", `{"jsonrpc":"2.0","id":1,"error":null}`,
			`the response has "error": null and no result, so it neither succeeds nor fails`),
		Entry("neither", `{"jsonrpc":"2.0","id":1}`, `the message has neither a method nor a result nor an error`),
		Entry("no id", `{"jsonrpc":"2.0","result":{}}`,
			`the response has no id, so the request that it answers is unknown`))

	It("points at a member that JSON-RPC does not know", func() {
		f := wire.ClassifyLine(&d, []byte(`{"jsonrpc":"2.0","method":"m","sessionId":"s"}`))
		Expect(f.Kind).To(Equal(wire.Notification))
		Expect(f.Extra.Str()).To(Equal("sessionId"))
		Expect(wire.ClassifyLine(&d, []byte(`{"jsonrpc":"2.0","method":"m"}`)).Extra.Exists()).To(BeFalse())
	})

	It("gives what can be read of a malformed frame", func() {
		f := wire.ClassifyLine(&d, []byte(`{"id":1,"method":"session/update","params":{"a":1}}`))
		Expect(f.Kind).To(Equal(wire.Malformed))
		Expect(f.ID).To(Equal(wire.ID("1")))
		Expect(f.Method).To(Equal("session/update"))
		Expect(f.Params.Get("a").Text()).To(Equal("1"))
	})
})

func FuzzClassifyLine(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":"\ud800","error":{"code":1,"message":""}}`))
	var d, again wire.Doc
	f.Fuzz(func(t *testing.T, line []byte) {
		frame := wire.ClassifyLine(&d, line)
		if (frame.Kind == wire.Malformed) != (frame.Problem != "") {
			t.Fatalf("%q: got kind %v and problem %q", line, frame.Kind, frame.Problem)
		}
		if strings.ContainsAny(frame.Problem, "\n\r\x1b") {
			t.Fatalf("%q: got a problem that is not one clean line: %q", line, frame.Problem)
		}
		if frame.Kind == wire.Malformed {
			return
		}
		// Written again from its parts, it is the same frame.
		text := []byte(`{"jsonrpc":"2.0"`)
		if frame.ID != "" {
			text = append(append(text, `,"id":`...), frame.ID...)
		}
		if frame.Kind != wire.Response {
			text = wire.AppendString(append(text, `,"method":`...), frame.Method)
		}
		for _, part := range []struct {
			key   string
			value wire.Value
		}{{"params", frame.Params}, {"result", frame.Result}, {"error", frame.Error}} {
			if part.value.Exists() {
				text = append(append(text, `,"`+part.key+`":`...), part.value.Raw()...)
			}
		}
		back := wire.ClassifyLine(&again, append(text, '}'))
		if back.Kind != frame.Kind || back.ID != frame.ID || back.Method != frame.Method {
			t.Fatalf("%q: got %+v, want %+v", text, back, frame)
		}
		for _, pair := range [][2]wire.Value{{back.Params, frame.Params}, {back.Result, frame.Result},
			{back.Error, frame.Error}} {
			if string(pair[0].Raw()) != string(pair[1].Raw()) {
				t.Fatalf("%q: got %q, want %q", text, pair[0].Raw(), pair[1].Raw())
			}
		}
	})
}
