package agents

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

var headerName = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~` + "`" + `-]+$`)

// CheckHeader says what is wrong with the name of a header.
func CheckHeader(name string) error {
	if !headerName.MatchString(name) {
		return fmt.Errorf("%q is no name of a header", name)
	}
	return nil
}

// headers are those of the profile with their variables replaced. They may name variables of the host's
// environment too, so that no secret is in a file or on a command line.
func (p *Profile) headers(values, host map[string]string) (map[string]string, error) {
	known := maps.Clone(host)
	maps.Copy(known, values)
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		for _, v := range reference.FindAllString(p.Headers[name], -1) {
			if _, ok := known[v[1:]]; !ok && v != "$$" && v != "$" {
				return nil, fmt.Errorf("the header %s of %s: %s is not set here", name, p.Shown(), v)
			}
		}
		out[name] = expand(p.Headers[name], known, false)
	}
	return out, nil
}
