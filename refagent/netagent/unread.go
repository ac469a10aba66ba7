package netagent

import (
	"encoding/json"
	"fmt"
)

// unread answers the agent's open requests of a session whose stream has no reader any longer, if a fault or a liberty
// says so. The session "" stands for all sessions.
func (c *connection) unread(session string) {
	c.mu.Lock()
	var open []string
	for id, of := range c.asked {
		if session == "" || of == session {
			open = append(open, id)
		}
	}
	c.mu.Unlock()
	if len(open) == 0 {
		return
	}
	var answer string
	switch {
	case c.does("lost-is-allowed"), c.does("socket-lost-is-allowed"):
		answer = `"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}`
	case c.does("lost-is-refused"):
		answer = `"error":{"code":-32603,"message":"nobody reads the question"}`
	default:
		return
	}
	for _, id := range open {
		c.deliver(message{ID: json.RawMessage(id)}, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, id, answer))
	}
}
