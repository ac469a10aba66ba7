// Package fakellm is a model server on loopback that answers as a script says, in
// the wire formats of OpenAI (Chat Completions and Responses), Anthropic and
// Gemini. The same script, seed and requests give the same bytes. The content of
// a request decides which reply it gets, never its order of arrival. A stream can
// be held open at a named gate until the gate is released.
package fakellm
