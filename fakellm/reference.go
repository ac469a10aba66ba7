package fakellm

import (
	"fmt"
	"strings"
)

// word is a key of a script and what it means.
type word struct{ key, takes, says string }

// section is a part of the reference: the keys of one kind of mapping.
type section struct {
	title, says string
	words       []word
}

func sections() []section {
	return []section{
		{"The script", "A script is a mapping. What is left out is empty.", []word{
			{"replies", "list of replies", "what the model says to the one prompt there is; short for one turn"},
			{"turns", "list of turns",
				"what it says to each prompt, in the order of the prompts: each turn is a list of replies, or a mapping with " +
					"`replies` and, where the server runs alone, the `prompt` that tells it from others"},
			{"lanes", "name: lane", "answers to requests that are not the conversation"},
			{"models", "list of names", "the models that exist; without it every name does"},
			{"api_key", "text", "the only key the server takes; without it any"},
			{"strict", "`true` or `false`",
				"whether the server refuses a conversation that the real API refuses, such as a tool call without its result; " +
					"`true` without it"},
			{"delay", "mapping", "slows every reply that has no delay of its own; see the step"},
		}},
		{"A reply", "A reply is a list of steps, and answers one request. `any` in its place is a list of alternatives: " +
			"the first whose `when` holds is used. A step is one of these; keys that are indented belong to the step above.",
			[]word{
				{"text", "text, or list of pieces", "the model says this; each piece is a chunk of the stream"},
				{"  chunks", "number, or list of pieces", "cuts the text"},
				{"  repeat", "number", "says it so often"},
				{"  late", "`true`", "says it whole, in the last event of the format from which clients read texts"},
				{"  part", "`true`", "says it in a part of the message of its own, where the format has such"},
				{"thinking", "as text", "the model's reasoning, where the format has one"},
				{"refusal", "as text", "a refusal, where the format has one"},
				{"tool", "name", "the model calls a tool: a neutral one, or one of the agent's own; own with args: {nth: N} is " +
					"the N-th of those that no neutral one stands for, and a text if there are fewer"},
				{"  args", "mapping", "its arguments"},
				{"  raw", "text, or list of pieces", "its arguments, byte for byte, also ones that are no JSON"},
				{"  args_gate", "name", "a gate inside the arguments"},
				{"  args_gate_at", "number", "after so many characters of them; else in the middle"},
				{"gate", "name", "holds the stream open until the scenario releases the gate"},
				{"pause", "duration, or range 10ms..50ms", "waits"},
				{"delay", "mapping", "slows this reply: `ttft` before the first byte, `per_chunk` before each further chunk"},
				{"usage", "mapping", "tokens: `input` (10), `output` (5), `cached`, `reasoning`"},
				{"stop", "`end`, `length`, `refusal` or `tool`", "why the model stopped; else tool after a tool call, and end"},
				{"fail", "mapping", "a deliberate fault of the server, at this place"},
				{"when", "conditions", "the reply is only for requests like this; it comes first"},
				{"must", "`true`", "a finding if nobody asks for this reply"},
			}},
		{"A fault", "The keys of `fail`. One of `status`, `disconnect`, `hang` and `truncate` ends the reply.", []word{
			{"status", "200 to 599", "an HTTP error; after the first byte, the error event the format has for that"},
			{"type", "text", "the type of the error in its body"},
			{"message", "text", "its message"},
			{"retry_after", "duration", "a header for clients that try again"},
			{"headers", "mapping", "more headers"},
			{"times", "number", "for how many requests of the same place it happens; else for all"},
			{"after_chunks", "number", "lets so many chunks pass first"},
			{"disconnect", "`true`, `now` or `mid-chunk`", "cuts the connection"},
			{"hang", "`true`", "never goes on, until the client hangs up"},
			{"malformed", "`sse` or `shape`", "sends an event that is no JSON, or JSON of no known shape"},
			{"truncate", "`true`, `body` or `end`",
				"ends the body cleanly but too early: inside an event, or before the last ones"},
			{"content_type", "text", "another content type"},
			{"body", "text", "another body"},
			{"slow", "mapping", "`bytes` bytes each `every`"},
		}},
		{"Conditions", "The keys of `when`; all must hold. `field: text` compares, `field~: regexp` searches, `field!~: " +
			"regexp` must not be found.", []word{
			{"user", "text", "what the user said last, all of it"},
			{"prompt", "text", "the editor's prompt alone"},
			{"result", "text", "the results of tools since then"},
			{"system", "text", "the instructions"},
			{"model", "text", "the model asked for"},
			{"wire", "text", "the wire format"},
			{"path", "text", "the path of the request"},
			{"tool", "text", "the name of a tool on offer"},
			{"body", "text", "the whole body"},
			{"tools", "true or false", "whether there are tools on offer"},
			{"schema", "true or false", "whether JSON of a schema is wanted"},
			{"stream", "true or false", "whether the answer is streamed"},
		}},
		{"A lane", "A lane takes the requests its `when` describes, before the conversation does. There are three without " +
			"a script: `schema` gives the smallest JSON that fits the schema a request asks for, `no-tools` a short text to " +
			"a request that offers no tools, `after` what is said beyond the last reply of a turn. A lane of the same name " +
			"replaces its reply.", []word{
			{"when", "conditions", "which requests"},
			{"reply", "reply", "the answer"},
			{"main", "`true`", "what matches is the conversation after all; in place of a reply"},
		}},
	}
}

const referenceExample = `# One turn: a tool call, held open in the middle, and what follows its result.
lanes:
  title:
    when: {system~: "title"}
    reply:
      - text: A title
replies:
  - - text: I'll write it.
      chunks: 3
    - gate: mid
    - tool: write_file
      args: {path: $WORK/a.txt, content: "hello\n"}
  - - when: {result~: "denied|rejected"}
    - text: Then I will not.
  - - fail: {status: 429, retry_after: 1s, times: 1}
  - - must: true
    - text: Done.
`

// Reference is the language of model scripts as a page of Markdown.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Model script\n\nWhat the fake model says: the `llm.yaml` of a scenario, or the file that " +
		"`acp-test fakellm` serves. One script serves all wire formats. " +
		"Which reply a request gets is decided by its content: by the prompt it is about, and by how many replies of the " +
		"model it already holds. Prompts of the same text are told apart by how often the request holds it, and those of " +
		"several sessions by which was prompted last. The same request gets the same reply, so an agent may retry.\n\n" +
		"```yaml\n" +
		referenceExample + "```\n")
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| key | takes | |\n|---|---|---|\n", s.title, s.says)
		for _, w := range s.words {
			key := "`" + strings.TrimSpace(w.key) + "`"
			if strings.HasPrefix(w.key, " ") {
				key = "&emsp;" + key
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", key, strings.ReplaceAll(w.takes, "|", "\\|"), w.says)
		}
	}
	b.WriteString("\nTexts, arguments and prompts may hold the variables of a scenario, such as `$WORK`; `$$` is a " +
		"dollar.\n")
	return b.String()
}
