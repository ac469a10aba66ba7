// Package script is the syntax of scenario files: a tree of lines and words with their positions, which Parse reads
// and Format prints.
//
// It knows no commands; package scenarios defines them and the meaning of their words. Tools that write scenarios
// build lines with New, Comment and Blank, and words with Text and Quote, so that they never quote a value by hand.
package script
