// Package scenarios reads scenarios, which are text files that script the editor's side of a conversation. It runs
// them against an agent and returns the results as plain data. A mistake in a scenario is an *Mistake with file, line
// and column. Misbehavior of an agent is a log entry and a verdict, not an error.
package scenarios
