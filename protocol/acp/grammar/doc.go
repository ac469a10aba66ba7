// Package grammar draws whole conversations with an agent of ACP: sessions, prompts, the
// model's replies and failures, and the acts of an editor at each open state of a turn. A
// conversation is a scenario without expectations of its own. Rules judge its run.
package grammar
