// Package fakellm is a fake model server on loopback. It gives the answers of a script, in the wire formats of OpenAI
// (Chat Completions and Responses), Anthropic and Gemini. The same script, seed and requests produce the same bytes.
// The content of a request decides which reply it gets; the order in which requests arrive does not matter. A stream
// can be held open at a named gate until the gate is released.
package fakellm
