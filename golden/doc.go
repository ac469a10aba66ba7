// Package golden compares what happened in a run with a text that a reviewer has
// read and a file keeps. A Renderer, which a protocol gives, makes the text of a
// transcript; Mask and Line are its building blocks. Diff compares two texts,
// Store keeps them.
package golden
