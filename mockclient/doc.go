// Package mockclient is a code editor for tests of Agent Client Protocol
// agents: it runs the agent's process tree and leaves nothing of it behind, and
// it plays the client's part of ACP v1 by a policy set before the act. Whatever
// crosses the wire, also what is not JSON, is in the transcript before it is
// handled, in order. Nothing an agent sends makes this package panic or block.
package mockclient
