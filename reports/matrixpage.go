package reports

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/acp-test/acp-test/inspector"
)

//go:embed page/matrix.html
var matrixTemplate string

// matrixPage is the matrix as one page without scripts. The template escapes
// what agents sent.
func matrixPage(m Matrix, w io.Writer) error {
	t, err := template.New("matrix").Funcs(template.FuncMap{
		"safe": harmless, "agents": aboutAgents, "measured": measured,
		"word":   func(c MatrixCell) string { return c.word(false) },
		"style":  func() template.CSS { return template.CSS(inspector.Style()) },
		"legend": func() string { return matrixLegend },
	}).Parse(matrixTemplate)
	if err != nil {
		return err
	}
	return t.Execute(w, m)
}
