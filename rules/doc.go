// Package rules judges transcripts by the rules of a protocol. The protocol
// provides a Set: its rules, and the registry of its requirements with their
// citations. A Checker of the Set observes every entry of a run and finds
// violations. Its work per frame is constant and its memory is bounded. Each
// Finding names the rule, the requirements, the entries and the reason.
// Conclude combines outcomes into one verdict. Behavior that the specification
// allows is never a failure.
package rules
