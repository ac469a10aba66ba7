// Package reports shows the outcome of a run: to people on a console and as a
// page, to CI systems in the formats they read. It knows scenarios.Run and the
// transcripts beside it, nothing else, and takes no word of an agent for
// anything but text: control characters, markup and commands in it do nothing.
package reports
