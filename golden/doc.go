// Package golden compares the text of a run with a golden: a text in a file that a reviewer has approved. A
// protocol's Renderer turns a transcript into text, with the help of Mask and Line. Diff compares texts. Store reads
// and writes goldens.
package golden
