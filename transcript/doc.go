// Package transcript is the append-only log of one run and the questions one
// can ask of it. It never loses, changes or reorders what it is given, also
// what is not JSON; all else (awaiting, rules, goldens, recordings, reports)
// is a function of it. Its file form is JSON Lines, readable with grep and jq
// and valid up to the last whole line after a crash.
package transcript
