// Package reports writes reports on a run: for people on a console and as an HTML page, for CI systems in their
// formats. Its input is a results.Run and the transcripts in the run's folder. It treats all text from an agent as
// plain text, so that control characters, markup and commands in it have no effect.
package reports
