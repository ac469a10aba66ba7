// Package grammar draws whole conversations with an ACP agent: sessions, prompts, the model's replies and failures,
// and the editor's acts in each state of a turn. A conversation is a scenario with few checks of its own; the rules
// judge its run.
package grammar
