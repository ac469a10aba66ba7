package schema

import (
	_ "embed" // for news.yaml
	"slices"
	"sync"

	"github.com/acp-test/acp-test/internal/yamlfile"
	"github.com/acp-test/acp-test/mistake"
)

//go:embed news.yaml
var newsFile []byte

// News has facts about the specification that are newer than the pinned schema.
type News struct {
	// Pinned is the package whose schema a test compares with the tables. Read is the day on which the newer facts
	// were looked up.
	Pinned string `yaml:"pinned"`
	Read   string `yaml:"read"`
	// Protocols has, for each protocol, the state of the schema that judges it.
	Protocols []State   `yaml:"protocols"`
	Features  []Feature `yaml:"features"`
}

// State is the state of the schema that judges a protocol.
type State struct {
	Protocol string `yaml:"protocol"`
	Schema   string `yaml:"schema"`
}

// Feature is one addition to the specification, or a draft that was withdrawn.
type Feature struct {
	Name      string   `yaml:"feature"`
	Protocols []string `yaml:"protocols"`
	Since     string   `yaml:"since"` // schema version that added the feature, with ? if the version is uncertain
	Date      string   `yaml:"date"`
	State     string   `yaml:"state"` // stable, unstable or withdrawn
	// Touches are the parts of the tables that the feature adds: TYPE, TYPE.KEY, TYPE=TAG or a method.
	Touches []string `yaml:"touches"`
}

// LatestNews returns the facts. The caller must not change them.
func LatestNews() *News { return latestNews() }

var latestNews = sync.OnceValue(func() *News {
	news := new(News)
	read := func() (err error) {
		defer mistake.Catch(&err)
		root, err := yamlfile.Parse("news.yaml", newsFile)
		if err == nil {
			root.Decode(news, "the news", "")
		}
		return err
	}
	if err := read(); err != nil {
		panic("schema: " + err.Error()) // it is embedded
	}
	return news
})

// Is reports whether f has the given state. It returns false if f is nil.
func (f *Feature) Is(state string) bool { return f != nil && f.State == state }

// Touching returns the feature that adds the given part to the tables of a protocol, or nil.
func (n *News) Touching(protocol, part string) *Feature {
	i := slices.IndexFunc(n.Features, func(f Feature) bool {
		return slices.Contains(f.Protocols, protocol) && slices.Contains(f.Touches, part)
	})
	if i < 0 {
		return nil
	}
	return &n.Features[i]
}
