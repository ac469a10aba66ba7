package liberties

import "slices"

// modelLiberties are about how the agent talks to its model.
func modelLiberties() []Liberty {
	return slices.Concat(
		of("",
			liberty("model-not-streamed", "asks its model for whole replies", "PROMPT-015",
				func(h *habits) { h.NoStream = true }).takes("agent_message"),
			liberty("model-retries", "asks its model again after a failure of the server", "PROMPT-023",
				func(h *habits) { h.Retries = true }),
			liberty("calls-in-parallel", "runs the calls of one reply at the same time", "TOOL-003",
				func(h *habits) { h.Parallel = true }),
		),
		of("asides",
			liberty("model-titles", "has its model write the title of a session", "INFO-004",
				func(h *habits) { h.TitleByModel = true }),
			liberty("model-asides", "asks its model what a prompt is about before each turn", "PROMPT-015",
				func(h *habits) { h.Asides = true }),
			liberty("model-warm-up", "asks its model something when a session begins", "INIT-023",
				func(h *habits) { h.WarmUp = true }),
		),
	)
}
