// Package transcript is the append-only log of one run, with functions to query it. It never loses, changes or
// reorders entries, even if they are not JSON. Everything else (awaiting, rules, goldens, recordings, reports) is
// computed from it. Its file format is JSON Lines, which grep and jq can read. After a crash, a file is valid up to
// the last complete line.
package transcript
