package sweep

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
)

// Key is a session that is drawn, as a short string: the seed, its number, which of several
// drafts of that number it is, and the parts that are left out of it.
type Key struct {
	Seed       int64
	N, Variant int
	// Without are parts of the session by the names that its grammar gives them.
	Without []string
}

// String is the key as ParseKey reads it: 1.143.2, or 1.143.2-0-3a without two parts.
func (k Key) String() string {
	return strings.Join(append([]string{fmt.Sprintf("%d.%d.%d", k.Seed, k.N, k.Variant)}, k.Without...), "-")
}

var keyForm = lazy.Regexp(`^(-?\d+)\.(\d+)\.(\d+)((?:-[0-9a-z]+)*)$`)

// ParseKey reads a key.
func ParseKey(text string) (k Key, err error) {
	m := keyForm().FindStringSubmatch(text)
	if m == nil {
		return k, fmt.Errorf("%q is no key of a session: SEED.NUMBER.DRAFT is expected, such as 1.143.2, "+
			"as a finding shows it", text)
	}
	k.Seed, _ = strconv.ParseInt(m[1], 10, 64)
	k.N, _ = strconv.Atoi(m[2])
	k.Variant, _ = strconv.Atoi(m[3])
	if m[4] != "" {
		k.Without = strings.Split(m[4][1:], "-")
	}
	return k, nil
}
