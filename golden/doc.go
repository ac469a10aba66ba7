// Package golden compares the text of a run with a golden: a text that a
// reviewer has read, kept in a file. A protocol's Renderer turns a transcript
// into text; Mask and Line are its building blocks. Diff compares texts, Store
// keeps them.
package golden
