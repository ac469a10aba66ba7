// Package mockclient is a code editor for tests of Agent Client Protocol agents.
// It runs the agent's process tree and leaves no process of it behind. It plays
// the client's part of ACP v1 by a policy set beforehand. Whatever crosses the
// wire, also if it is not JSON, is in the transcript, in order, before it is
// handled. Nothing an agent sends makes this package panic or block.
package mockclient
