// Package rules judges transcripts by the rules of a protocol. The protocol
// provides a Set: its rules, and the registry of its requirements with their
// citations. A Checker of the Set watches every entry of a run and finds
// violations of the protocol, in constant work for each frame and bounded memory.
// Each Finding names the rule, the requirements, the entries and the reason.
// Conclude combines outcomes into one verdict. Nothing that the specification
// allows is a failure.
package rules
