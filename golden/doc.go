// Package golden compares the text of a run with a golden, which a reviewer has
// read and a file keeps. A protocol's Renderer turns a transcript into text;
// Mask and Line help it. Diff compares texts, Store keeps them.
package golden
