package reports_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/sebdah/goldie/v2"

	"github.com/acp-test/acp-test/inspector"
	"github.com/acp-test/acp-test/protocol/acp/acpreport"
	"github.com/acp-test/acp-test/protocol/acp/canonical"
	"github.com/acp-test/acp-test/reports"
	"github.com/acp-test/acp-test/scenarios/results"
	"github.com/acp-test/acp-test/scenarios/verdict"
)

func write(format string, run results.Run) string {
	var b bytes.Buffer
	ExpectWithOffset(1, reports.Write(inspector.Protocol{Text: canonical.V1()}, format, run, &b)).To(Succeed())
	return b.String()
}

var _ = Describe("reports", func() {
	fixed := func(name, text string) {
		goldie.New(GinkgoTB(), goldie.WithTestNameForDir(false)).Assert(GinkgoTB(), name, []byte(text))
	}

	for _, format := range []string{"json", "junit", "markdown", "tap", "github", "badge", "text"} {
		It("writes "+format, func() { fixed(format, write(format, sample())) })
	}

	It("names the formats there are when asked for another", func() {
		Expect(reports.Write(inspector.Protocol{Text: canonical.V1()}, "pdf", sample(), io.Discard)).
			To(MatchError(ContainSubstring("json, junit, html")))
		for _, f := range reports.Formats() {
			file, about := reports.File(f)
			Expect(file).NotTo(BeEmpty())
			Expect(about).NotTo(BeEmpty())
		}
	})

	It("writes an empty run in every format", func() {
		for _, f := range reports.Formats() {
			if text := write(f, results.Run{}); f != "github" { // which has nothing to say then
				Expect(text).NotTo(BeEmpty(), f)
			}
		}
	})

	It("lets no control character of an agent through", func() {
		for _, f := range []string{"markdown", "tap", "github", "text", "junit"} {
			Expect(write(f, sample())).NotTo(MatchRegexp(`[\x00-\x08\x0b-\x1f\x7f]`), f)
		}
		for line := range strings.SplitSeq(write("github", sample()), "\n") {
			if line != "" {
				Expect(line).To(HavePrefix("::"))
				Expect(line[2:]).To(MatchRegexp(`^(error|warning|notice) `))
			}
		}
		outside := regexp.MustCompile("(?sm)^ *```+\\w+$.*?^ *```+$").
			ReplaceAllString(write("markdown", sample()), "block")
		outside = strings.ReplaceAll(outside, "\\`", "") // escaped, so that it begins no code
		outside = regexp.MustCompile("(?s)`+[^`]*`+").ReplaceAllString(outside, "code")
		Expect(outside).NotTo(ContainSubstring("<script"))
	})

	Describe("results.json", func() {
		It("can be read back", func() {
			run, err := reports.Read(strings.NewReader(write("json", sample())))
			Expect(err).NotTo(HaveOccurred())
			Expect(run.Results).To(HaveLen(len(sample().Results)))
			Expect(write("json", run)).To(Equal(write("json", sample())))
		})

		DescribeTable("is refused", func(text, why string) {
			_, err := reports.Read(strings.NewReader(text))
			Expect(err).To(MatchError(ContainSubstring(why)))
		},
			Entry("of another version", `{"version":99}`, "version 99, this program reads version 1"),
			Entry("without a version", `{"results":[]}`, "not a results.json"),
			Entry("when it is not valid JSON", `<xml/>`, "reading results"))

		It("is what its schema says, and the schema says nothing else", func() {
			schema := compile()
			valid := func(text string) error {
				v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
				Expect(err).NotTo(HaveOccurred())
				return schema.Validate(v)
			}
			Expect(valid(write("json", sample()))).To(Succeed())
			Expect(valid(write("json", results.Run{Verdict: results.Pass}))).To(Succeed())
			var full results.Run
			fill(reflect.ValueOf(&full).Elem())
			text := write("json", full)
			Expect(valid(text)).To(Succeed(), "a field is missing in the schema")
			Expect(valid(strings.Replace(text, `"tool"`, `"extra": 1, "tool"`, 1))).NotTo(Succeed())
			Expect(valid(strings.Replace(text, `"verdict": "pass"`, `"verdict": "fine"`, 1))).NotTo(Succeed())
		})
	})

	It("tells once what is wrong everywhere, and lets pass what shows nothing else", func() {
		run := results.Run{Agent: results.Agent{Profile: "mine"}, Protocol: "1"}
		for i := range 6 {
			run.Results = append(run.Results, results.Result{ID: fmt.Sprintf("a/%d", i), Verdict: results.Fail,
				Findings: []results.Finding{{Rule: "CAP-GATE", Point: "login", Class: results.Fail,
					Message: "It offers a login."}}})
		}
		run.Results[5].Checks = []results.Check{{ID: "a/5#said", Verdict: results.Fail}}
		verdict.Conclude(&run)
		junit := write("junit", run)
		Expect(junit).To(ContainSubstring(`<testsuites name="acp-test mine" tests="7" failures="2" errors="0" ` +
			`skipped="0"`))
		Expect(strings.Count(junit, "<failure ")).To(Equal(2))
		Expect(junit).To(ContainSubstring(`<testcase name="CAP-GATE login" classname="mine.everywhere"`))
		tap := write("tap", run)
		Expect(tap).To(HavePrefix("TAP version 14\n1..7\nok 1 - a/0\n"))
		Expect(tap).To(HaveSuffix("\nnot ok 7 - CAP-GATE login It offers a login.\n"))
		Expect(write("badge", run)).To(ContainSubstring("5/6 pass"))
		Expect(write("markdown", run)).
			To(ContainSubstring("6 scenarios: 5 pass (all apart from CAP-GATE login), 1 fail by 2 causes"))
		m := reports.NewMatrix(acpreport.V1(), []reports.Column{{Name: "mine", Run: run}})
		Expect(page("markdown", m)).To(ContainSubstring("| wrong everywhere | CAP-GATE login |\n| passed | 5 |\n" +
			"| failed | 1 |\n"))
	})

	It("writes JUnit that a strict parser takes", func() {
		text := write("junit", sample())
		var parsed struct {
			Tests, Failures, Errors, Skipped int `xml:",attr"`
			Suites                           []struct {
				Tests int `xml:"tests,attr"`
				Cases []struct {
					Name    string `xml:"name,attr"`
					Failure *struct {
						Message string `xml:"message,attr"`
					} `xml:"failure"`
					Error   *struct{} `xml:"error"`
					Skipped *struct {
						Message string `xml:"message,attr"`
					} `xml:"skipped"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		d := xml.NewDecoder(strings.NewReader(text))
		d.Strict = true
		Expect(d.Decode(&parsed)).To(Succeed())
		tests, failures, errors, skipped := 0, 0, 0, 0
		for _, s := range parsed.Suites {
			Expect(s.Cases).To(HaveLen(s.Tests))
			for _, c := range s.Cases {
				tests++
				switch {
				case c.Failure != nil:
					failures++
					Expect(c.Failure.Message).NotTo(BeEmpty())
				case c.Error != nil:
					errors++
				case c.Skipped != nil:
					skipped++
					Expect(c.Skipped.Message).NotTo(BeEmpty())
				}
			}
		}
		Expect([]int{tests, failures, errors, skipped}).To(Equal([]int{10, 3, 1, 3}))
		Expect(text).To(ContainSubstring("&lt;script&gt;"))
	})

	It("counts inconclusive as a failure in JUnit when the run is strict", func() {
		run := sample()
		run.Strict = true
		Expect(write("junit", run)).To(ContainSubstring(`type="inconclusive"`))
	})
})

func compile() *jsonschema.Schema {
	file, err := os.Open(filepath.Join("..", "docs", "schema", "results.schema.json"))
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	v, err := jsonschema.UnmarshalJSON(file)
	Expect(err).NotTo(HaveOccurred())
	c := jsonschema.NewCompiler()
	Expect(c.AddResource("results.schema.json", v)).To(Succeed())
	schema, err := c.Compile("results.schema.json")
	Expect(err).NotTo(HaveOccurred())
	return schema
}

// fill gives every field of a value something, so that nothing is left out.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
		return
	case results.Verdict:
		v.Set(reflect.ValueOf(results.Pass))
		return
	case json.RawMessage:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}
