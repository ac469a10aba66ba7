// Package rules judges transcripts. A Checker watches every entry of a run and
// finds what breaks the protocol, in constant work a frame and bounded memory;
// each Finding names the rule, the requirements, the entries and the reason.
// The registry holds the requirements with their citations, and Conclude turns
// outcomes into one verdict. Nothing the specification allows is a failure.
package rules
