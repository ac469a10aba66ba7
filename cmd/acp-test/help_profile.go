package main

import (
	"fmt"
	"strings"

	"github.com/acp-test/acp-test/agents"
	"github.com/acp-test/acp-test/fakellm"
)

const aboutProfiles = `A profile is one YAML file that says how to run an agent. A command after -- is
enough for most; a profile holds what a command cannot say.

  name: my-agent                  # what goldens and reports call it
  title: My agent                 # for people
  command: [my-agent, --acp]      # a program in PATH, or a path from this file's folder
  url: http://127.0.0.1:8000/acp  # in place of command: an agent that runs already
  dir: $WORK                      # where it is started
  env: {OPENAI_BASE_URL: $LLM/v1, OPENAI_API_KEY: $KEY}
  home: {.config/mine.json: '{"baseUrl": "$LLM/v1"}'}   # files below its HOME
  setup: [sh, -c, 'my-agent login --url $LLM']   # run once before the first agent
  auth: api-key                   # log in with this method before the first session
  model: {wire: openai-chat}      # WIRES
  tools:                          # its own tool for each neutral one
    write_file: {name: write, args: {file: $path, text: $content}}
    read_file: {name: shell, args: {command: "cat ${path|shell}"}, cannot: [large]}
  timeouts: {start: 20s, step: 10s, scenario: 1m}
  known-failures: my-agent.known.yaml

$LLM is the model's base URL without a version path, $KEY a key for it, $WORK, $HOME
and $TMP are folders of the run, $AGENT_DIR is where the agent is installed, $CWD
where you are; $$ is a dollar. Neutral tools and their arguments:

TOOLS
In ${content|CHANGE} an argument's text is changed first: CHANGES;
prefix:X puts X before each line, shell makes one word of a shell of it. Scenarios
that ask for what a tool cannot do are skipped. Without tools, they are learned from
what the agent offers its model; a tool that it does not offer is the lint TOOL-OFFERED.

  acp-test init -- AGENT…         writes a first profile
  acp-test agents FILE            says what a profile means
  acp-test run --agent FILE       runs with it
  acp-test run --profile FILE -- AGENT…   runs a command with what it knows

What the set-up step leaves below its HOME, each agent gets a copy of, with the URL of
its own model. A command that starts an agent with a shipped profile, known by its program,
its package or the name that it gives itself in initialize, gets that one's environment,
HOME, set-up, login and tools by itself; --profile none leaves them out.
`

// profileHelp says how a profile is written.
func profileHelp() string {
	var tools strings.Builder
	for _, t := range agents.NeutralTools() {
		fmt.Fprintf(&tools, "  %-12s%s", t.Name, strings.Join(t.Args, ", "))
		if len(t.Can) > 0 {
			fmt.Fprintf(&tools, "; cannot: %s", strings.Join(t.Can, ", "))
		}
		tools.WriteByte('\n')
	}
	return strings.NewReplacer("WIRES", "or "+strings.Join(fakellm.Wires(), ", "), "TOOLS\n", tools.String(),
		"CHANGES", strings.Join(fakellm.Transforms(), ", ")).Replace(aboutProfiles)
}
