package main

import "os"

// passedOn are the signals that a proxy passes on to the agent.
func passedOn() []os.Signal { return []os.Signal{os.Interrupt} }

// endBy stands for the end by a signal, which Windows does not have.
func endBy(string) error { return status(1) }
