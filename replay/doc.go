// Package replay records sessions between an editor and an agent and plays them again. Proxy records: it forwards all
// bytes unchanged and logs every line. Player plays the recorded editor to a live agent. Recorded returns an agent
// that plays the recorded agent to a live editor. Replay and Judge return verdicts. Read also reads recordings of
// other programs.
package replay
