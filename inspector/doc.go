// Package inspector shows transcripts in a browser. It writes a single page that contains its data, or runs a local
// server whose page follows files while they are written. A value of type Protocol explains the entries, so the
// package works for any protocol.
package inspector
