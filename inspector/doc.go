// Package inspector shows transcripts in a browser: as one page that contains its data, and as pages of a local
// server, which follows files while they are written. It gets the meaning of entries from the values of Protocol, so
// it works for any protocol.
package inspector
