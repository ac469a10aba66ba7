// Package agents says how to run an agent under test: its command, its
// environment, the files in its home, how it reaches the model and the names of
// its tools. It ships profiles, reads others, and makes one up for an unknown
// command. An agent gets a clean home and never a credential of the host. The
// package reads no environment except the one it is given.
package agents
