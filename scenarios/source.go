package scenarios

import "os"

// Source returns the text of a scenario as it was written: of a shipped one
// from the binary, of any other from its file.
func (s *Scenario) Source() ([]byte, error) {
	if s.Suite != "" {
		return s.text, nil
	}
	return os.ReadFile(s.File)
}
