// Package mockclient is a code editor for tests of Agent Client Protocol agents. It starts the agent and, at the end,
// kills all processes of the agent's process tree. It acts as an ACP v1 client whose reactions are configured
// beforehand. Everything that is sent or received, even if it is not JSON, is appended to the transcript, in order,
// before it is handled. No input from an agent makes this package panic or block.
package mockclient
