// Package reports shows the outcome of a run: to people on a console and as a page, to CI systems in their formats. It
// knows only results.Run and the transcripts next to it. It treats everything from an agent as plain text: control
// characters, markup and commands have no effect.
package reports
