// Package agents says how to run an agent under test: which command, in which
// environment, with which files in its home, how it reaches the model and what
// its tools are called. It ships profiles, reads others, and makes one up for a
// command it has never seen. An agent gets a clean home and never a credential
// of the host's; the package reads no environment but what it is handed.
package agents
