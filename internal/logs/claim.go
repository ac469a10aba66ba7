package logs

import (
	"strings"

	"github.com/acp-test/acp-test/internal/lazy"
)

// family is a kind of words for the two directions of messages, such as "sent" and "received". For some families, the
// meaning depends on the program that wrote the log: in an editor's log, a "sent" message comes from the editor; in
// an agent's log, from the agent.
type family uint8

// The families, in order of decreasing reliability.
const (
	none    family = iota
	named          // from client, agent -> client, c2a
	stream         // stdin, stdout
	arrow          // ->, <-
	flow           // sent, received
	bearing        // upstream, downstream
	party          // client, agent: the party named in the line
	families
)

// claim is the sender of a message according to the log. It was read from a word of the given family.
type claim struct {
	family family
	side   Side
}

// words maps words for a direction to the sender that they mean in an editor's log.
var words = map[string]claim{
	"c2a": {named, Editor}, "e2a": {named, Editor}, "c2s": {named, Editor}, "a2c": {named, Agent}, "a2e": {named, Agent},
	"s2c": {named, Agent}, "clienttoagent": {named, Editor}, "agenttoclient": {named, Agent},
	"editortoagent": {named, Editor}, "agenttoeditor": {named, Agent}, "clienttoserver": {named, Editor},
	"servertoclient": {named, Agent},
	"stdin":          {stream, Editor}, "stdout": {stream, Agent},
	"upstream": {bearing, Editor}, "downstream": {bearing, Agent},
	"out": {flow, Editor}, "outgoing": {flow, Editor}, "outbound": {flow, Editor}, "send": {flow, Editor},
	"sent": {flow, Editor}, "sending": {flow, Editor}, "tx": {flow, Editor}, "write": {flow, Editor},
	"wrote":   {flow, Editor},
	"writing": {flow, Editor}, "egress": {flow, Editor},
	"in": {flow, Agent}, "incoming": {flow, Agent}, "inbound": {flow, Agent}, "recv": {flow, Agent},
	"receive":  {flow, Agent},
	"received": {flow, Agent}, "receiving": {flow, Agent}, "rx": {flow, Agent}, "read": {flow, Agent},
	"reading": {flow, Agent}, "ingress": {flow, Agent}, "got": {flow, Agent},
	"client": {party, Editor}, "editor": {party, Editor}, "ide": {party, Editor}, "frontend": {party, Editor},
	"agent": {party, Agent}, "server": {party, Agent}, "backend": {party, Agent}, "subprocess": {party, Agent},
}

var (
	camel = lazy.Regexp(`([a-z0-9])([A-Z])`)
	// token matches an arrow or a word. A single < or > is ignored, unless it is the first or the last token of a
	// text.
	token = lazy.Regexp(`<?[-=]+>|<[-=]+|>{2,3}|<{2,3}|[→←⇒⇐➡⬅⟶⟵▶◀]|[A-Za-z0-9]+|[<>]`)
)

// claimOf reads the sender of a message from the text before the message, or from the key or the value of a member
// around it. The words closest to the message decide.
func claimOf(text string) (found claim) {
	text = strings.TrimRight(text, " \t:=|\"'`([{,")
	var before []string
	tokens := token().FindAllString(camel().ReplaceAllString(text, "$1 $2"), -1)
	for i, t := range tokens {
		single := t == "<" || t == ">"
		if single && i > 0 && i < len(tokens)-1 {
			continue
		}
		if c := read(before, strings.ToLower(t)); c.side != Unknown {
			found = c
		}
		before = append(before, strings.ToLower(t))
	}
	return found
}

// read returns the claim of a word, given the words before it.
func read(before []string, word string) claim {
	last := func(n int) string {
		if len(before) < n {
			return ""
		}
		return before[len(before)-n]
	}
	c := words[word]
	if way := pointing(word); way != Unknown {
		return claim{arrow, way}
	}
	if c.family != party {
		return c
	}
	other := words[last(2)]
	switch link := last(1); {
	case (pointing(link) != Unknown || link == "to" || link == "2") && other.family == party && other.side != c.side:
		if pointing(link) == Agent {
			return claim{named, c.side} // client <- agent
		}
		return claim{named, other.side}
	case link == "from":
		return claim{named, c.side}
	case link == "to":
		return claim{named, -c.side}
	case pointing(link) == Editor: // -> agent
		return claim{named, -c.side}
	case pointing(link) == Agent: // <- agent
		return claim{named, c.side}
	}
	return c
}

// pointing returns the sender that an arrow indicates: an arrow to the right means the editor, to the left the agent.
// It returns Unknown for other words.
func pointing(word string) Side {
	switch {
	case word == "":
		return Unknown
	case strings.ContainsAny(word, "→⇒➡⟶▶") || strings.HasSuffix(word, ">") && !strings.HasPrefix(word, "<"):
		return Editor
	case strings.ContainsAny(word, "←⇐⬅⟵◀") || strings.HasPrefix(word, "<") && !strings.HasSuffix(word, ">"):
		return Agent
	}
	return Unknown
}

// decide sets the sender of each message. To judge the words of a family, it compares them with the senders of
// messages that only one side can send. Words that mostly agree are used, words that mostly disagree are used in
// reverse, and other words are ignored.
func (r *reader) decide() {
	var agreed, denied [families]int
	for _, m := range r.log.Messages {
		if m.known != Unknown && m.claim.side != Unknown {
			if m.known == m.claim.side {
				agreed[m.claim.family]++
			} else {
				denied[m.claim.family]++
			}
		}
	}
	for i := range r.log.Messages {
		m := &r.log.Messages[i]
		yes, no := agreed[m.claim.family], denied[m.claim.family]
		switch {
		case yes > 0 && no > 0 && yes < 4*no && no < 4*yes: // neither prevails, so the words mean something else
			m.From = m.known
		case yes > 0 && no > 0 && m.known != Unknown:
			m.From = m.known
		case no > yes:
			m.From = -m.claim.side
		default:
			m.From = m.claim.side
		}
	}
}
