// Package transcript is the append-only log of one run, with functions to query
// it. It never loses, changes or reorders entries, even those that are not JSON.
// Everything else (awaiting, rules, goldens, recordings, reports) is computed
// from it. Its file form is JSON Lines, readable with grep and jq and valid up to
// the last whole line after a crash.
package transcript
