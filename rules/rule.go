package rules

// Rule is one passive invariant: what it says, what backs it, and the state
// machine that watches for it.
type Rule struct {
	// ID is the name users know it by: "CANCEL-REASON".
	ID   string
	Side Side
	// Sentence says the rule in one sentence.
	Sentence string
	// Points are the ways to break it.
	Points []Point

	// versions are the protocol versions in which the rule holds as written;
	// nil means all.
	versions []int
	start    func(*watch)
}

// Point is one way to break a rule, with a class and backing of its own.
type Point struct {
	ID           string
	Class        Class
	Requirements []string
	// Says is the point in one sentence.
	Says string
}

// Class is the worst class among the rule's points.
func (r Rule) Class() Class {
	worst := Info
	for _, p := range r.Points {
		worst = max(worst, p.Class)
	}
	return worst
}

// Requirements are the ids of all requirements the rule can show broken.
func (r Rule) Requirements() []string {
	var ids []string
	seen := map[string]bool{}
	for _, p := range r.Points {
		for _, id := range p.Requirements {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// Rules returns all rules: those about agents in the order of how often they
// are broken in the wild, then those that compare or need a probe to have
// anything to judge, then those about clients.
func Rules() []Rule {
	return []Rule{
		lateContent(), stdoutClean(), sessionKnownFirst(), toolClosed(), cancelReason(),
		toolAnnounced(), shape(), configComplete(), modeSync(), loadWindow(),
		resumeSilent(), authCode(), capGate(), pathAbs(), rootKeys(),
		cancelCause(), oneResponse(), toolResend(), userEcho(), statusForward(),
		permGuard(), usageSane(), termLife(), planFull(), msgRuns(),
		listSane(), notifySilent(), initEcho(), terminalRef(), elicitScope(),
		closeSettles(), deleteGone(), rcancelOwn(), authMethods(), errForm(),

		worksAgain(), promptAccepted(), emptyTurn(), sessionDistinct(), textWhole(), loadStable(), contentData(), elicitCare(),

		clientPermCancel(), clientPermOffered(), clientGate(), clientInitFirst(), clientAnswer(),
		clientCwd(), clientModeListed(), clientCursor(), clientElicitCode(), clientTermUTF8(), clientShape(),
	}
}

// LookupRule returns the rule with an id.
func LookupRule(id string) (Rule, bool) {
	for _, r := range Rules() {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}
