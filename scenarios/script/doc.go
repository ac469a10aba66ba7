// Package script is the syntax of scenario files: a tree of lines and words with
// their positions, which Parse reads and Format prints.
//
// It knows no command. What a command is, and what its words mean, is for
// package scenarios to say. Tools that write scenarios build lines with New,
// Comment and Blank, and words with Text and Quote, so that no value has to be
// quoted by hand.
package script
