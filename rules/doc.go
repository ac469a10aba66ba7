// Package rules judges transcripts by the rules of a protocol. A Set is given by
// the protocol: its rules, and the registry of its requirements with their
// citations. A Checker of it watches every entry of a run and finds what breaks
// the protocol, in constant work a frame and bounded memory; each Finding names
// the rule, the requirements, the entries and the reason. Conclude turns outcomes
// into one verdict. Nothing the specification allows is a failure.
package rules
