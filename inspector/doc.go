// Package inspector shows transcripts in a browser: as one page that holds its data, and
// as pages of a server on this machine, which follows files while they are written. What
// an entry means comes from the values it is given, so it serves any protocol.
package inspector
