package results

// Rules of the engine itself, for what no frame shows.
const (
	// EgressRule is the rule of findings about hosts that the agent wanted to reach.
	EgressRule = "EGRESS"
	// ToolOfferedRule is the rule of findings about tools of a profile that the agent does
	// not offer its model.
	ToolOfferedRule = "TOOL-OFFERED"
	// AfterOthersRule is the rule of findings that show only in a process that has run
	// other scenarios before.
	AfterOthersRule = "AFTER-OTHERS"
)

// FurtherCheck is the slug of the check of the plain turn that follows each scenario.
const FurtherCheck = "further"
