// Package replay records sessions between an editor and an agent and plays them again. Proxy records: it passes all
// bytes on unchanged and logs every line. Player plays the recorded editor for a live agent; Recorded returns the
// recorded agent for a live editor. Replay and Judge return verdicts. Read reads recordings of other programs.
package replay
