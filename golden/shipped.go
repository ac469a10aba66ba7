package golden

import (
	"embed"
	"io/fs"
)

//go:embed reference reference-acp-v2 reference-ag-ui
var shipped embed.FS

// Shipped holds the goldens of the reference agent for the suites in the
// binary, as Store.Embedded takes them. It is read-only.
func Shipped() fs.FS { return shipped }
