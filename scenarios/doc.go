// Package scenarios reads scenarios, text files that script the editor's side
// of a conversation, runs them against an agent, and says how they went. A
// mistake in a scenario is an *Error with file, line and column; misbehaviour
// of an agent is an entry and a verdict. Result is plain data.
package scenarios
