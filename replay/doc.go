// Package replay records sessions between an editor and an agent and plays
// them again. Record is a byte-exact proxy that loses nothing it passed on;
// Play is the recorded editor for a live agent; Serve is the recorded or
// scripted agent for a live editor; both end in a verdict. Read takes
// recordings of others, Convert makes scenarios of them.
package replay
