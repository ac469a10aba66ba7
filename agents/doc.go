// Package agents describes how to run an agent under test. A profile contains the agent's command, its environment,
// the files in its home, how it reaches the model and the names of its tools. The package ships profiles, reads
// others from files, and creates one for an unknown command. An agent gets a clean home and no credential of the
// host. The package reads only the environment that its caller passes in.
package agents
