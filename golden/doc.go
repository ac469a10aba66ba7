// Package golden turns a transcript into text that a reviewer reads and a file
// keeps. Render shows each message on one line, with every field shown or
// hashed; its canonical form is the same for any two runs that differ only by
// an interleaving the protocol allows, and different for any other two.
// Diff compares two such texts, Store keeps them, Line shows a single entry.
package golden
