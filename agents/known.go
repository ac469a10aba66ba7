package agents

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/glob"
	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
)

// KnownFailure is a failure of an agent that a run expects, and why.
type KnownFailure struct {
	// Scenario is a glob over scenario ids: * stands for any text without a
	// slash, ** for any text.
	Scenario string `yaml:"scenario"`
	// ID names the check (the part after the # of its id), the rule or the cause.
	ID string
	// Cause: ID is a cause, as reports name it: a rule and its point, or a requirement.
	// Checks that miss beside the rule, for one of its requirements, belong to it.
	Cause   bool      `yaml:"-"`
	Reason  string    `yaml:"reason"`
	Link    string    `yaml:"link"`    // where more is said; may be empty
	Expires time.Time `yaml:"expires"` // the day from which the entry no longer counts; zero: never
	// Flaky: what the entry expects may also not happen. Such an entry is
	// never stale.
	Flaky bool `yaml:"flaky"`
	// Requirements are those that the agent breaks, where a flaky rule stands for
	// more; empty means all of the rule's. Of others each finding names its own.
	Requirements []string `yaml:"requirements"`
	// Protocols are those in which the entry counts, as --protocol has them; empty means
	// the one that the profile is for.
	Protocols []string `yaml:"protocols"`
	File      string
	Line      int
}

// Covers reports whether the entry expects what has these names to fail in this
// scenario. A name may be a check's whole id, with the scenario before the #.
func (k KnownFailure) Covers(scenario string, names ...string) bool {
	return k.Selects(scenario) && slices.ContainsFunc(names, func(name string) bool {
		return name[strings.Index(name, "#")+1:] == k.ID
	})
}

// everywhere is the glob of all scenarios.
const everywhere = "**"

// Selects reports whether the entry speaks of this scenario.
func (k KnownFailure) Selects(scenario string) bool {
	return glob.Path(k.Scenario, scenario)
}

// Expired reports whether the entry has ceased to count.
func (k KnownFailure) Expired(now time.Time) bool {
	return !k.Expires.IsZero() && !now.Before(k.Expires)
}

// ParseKnownFailures reads a list of known failures in YAML. name stands in
// messages; every error is a *Mistake.
func ParseKnownFailures(name string, src []byte) (out []KnownFailure, err error) {
	defer mistake.Catch(&err)
	root, err := yamlfile.Parse(name, src)
	if err != nil {
		return nil, err
	}
	for _, item := range root.List("the file of known failures") {
		var entry struct {
			KnownFailure
			Check string `yaml:"check"`
			Rule  string `yaml:"rule"`
			Cause string `yaml:"cause"`
		}
		item.Decode(&entry, "a known failure", "")
		k := entry.KnownFailure
		ids := slices.DeleteFunc([]string{entry.Check, entry.Rule, entry.Cause}, func(id string) bool { return id == "" })
		k.File, k.Line, k.ID, k.Cause = name, item.Line, strings.Join(ids, ""), entry.Cause != ""
		if k.Cause && k.Scenario == "" {
			k.Scenario = everywhere
		}
		switch {
		case k.Scenario == "":
			item.Fail("", "a known failure needs a scenario: an id or a glob such as load/*; only a cause may stand without")
		case len(ids) != 1:
			item.Fail("", "a known failure needs either a check, a rule or a cause")
		case strings.TrimSpace(k.Reason) == "":
			item.Fail("", "a known failure needs a reason")
		case len(k.Requirements) > 0 && (!k.Flaky || k.ID != strings.ToUpper(k.ID)):
			item.Fail("", "requirements say which of a flaky rule's are broken; a check, and what always fails, names its own")
		}
		out = append(out, k)
	}
	return out, nil
}

// FormatKnownFailures writes a list as ParseKnownFailures reads it.
func FormatKnownFailures(list []KnownFailure) []byte {
	var b strings.Builder
	for _, k := range list {
		// A rule is in capitals, the slug of a check is not. The reader takes
		// both for either, so a wrong guess does no harm.
		kind := "check"
		if k.ID == strings.ToUpper(k.ID) {
			kind = "rule"
		}
		if k.Cause {
			kind = "cause"
		}
		if k.Cause && k.Scenario == everywhere {
			b.WriteString("- ")
		} else {
			b.WriteString("- scenario: " + strconv.Quote(k.Scenario) + "\n  ")
		}
		b.WriteString(kind + ": " + strconv.Quote(k.ID) + "\n")
		b.WriteString("  reason: " + strconv.Quote(k.Reason) + "\n")
		more := func(set bool, key, value string) {
			if set {
				b.WriteString("  " + key + ": " + value + "\n")
			}
		}
		more(k.Link != "", "link", strconv.Quote(k.Link))
		more(!k.Expires.IsZero(), "expires", k.Expires.Format(time.DateOnly))
		more(k.Flaky, "flaky", "true")
		more(len(k.Protocols) > 0, "protocols", "["+strings.Join(k.Protocols, ", ")+"]")
		more(len(k.Requirements) > 0, "requirements", "["+strings.Join(k.Requirements, ", ")+"]")
	}
	if b.Len() == 0 {
		return []byte("[]\n")
	}
	return []byte(b.String())
}
