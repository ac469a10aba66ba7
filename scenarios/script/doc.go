// Package script defines the syntax of scenario files: a tree of lines and words with their positions. Parse reads
// the tree, and Format prints it.
//
// The package does not know the commands; package scenarios defines them. Tools that write scenarios make lines with
// New, NewComment and Blank, and words with Text and Quote. So they never have to quote a value by hand.
package script
