// Package golden compares a run with a text that a reviewer has read and a file
// keeps. A Renderer, which each protocol has, turns a transcript into text; Mask
// and Line are its building blocks. Diff compares two texts, Store keeps them.
package golden
