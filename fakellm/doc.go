// Package fakellm is a model server that says what a script tells it to, on
// loopback, in the wire formats of OpenAI (Chat Completions and Responses),
// Anthropic and Gemini. The same script, seed and requests give the same bytes.
// Which reply a request gets is decided by its content, never by its order of
// arrival, and a stream can be held open at a named gate until it is released.
package fakellm
