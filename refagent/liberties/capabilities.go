package liberties

import "slices"

// capabilities are those that an agent may lack, with the words by which a reason
// names them.
var capabilities = [][2]string{
	{"load", "loadSession"}, {"list", "list"}, {"resume", "resume"}, {"close", "close"}, {"delete", "delete"},
	{"directories", "additionalDirectories"}, {"image", "image"}, {"audio", "audio"},
	{"embedded", "embeddedContext"}, {"http", "http"},
}

// capabilityLiberties are about what an agent says it can do.
func capabilityLiberties() []Liberty {
	var all []string
	for _, c := range capabilities {
		all = append(all, c[0])
	}
	only := []Liberty{liberty("core-only", "has no capability beyond the core", "INIT-018", lacking(all...)).
		takes("agentCapabilities")}
	var list []Liberty
	for _, c := range capabilities {
		name, called := c[0], c[1]
		list = append(list,
			liberty("no-"+name, "lacks the capability "+called, "INIT-016 INIT-018", lacking(name)).takes(called))
		only = append(only,
			liberty("only-"+name, "has no capability beyond the core but "+called, "INIT-016 INIT-018",
				lacking(slices.DeleteFunc(slices.Clone(all), func(other string) bool { return other == name })...)).
				takes("agentCapabilities"))
	}
	return slices.Concat(of("", list...), of("capabilities", only...),
		of("logins",
			liberty("login-offered", "offers logins, and needs none", "AUTH-001 AUTH-008", func(h *habits) {
				h.Logins = []string{"oauth-personal", "api-key"}
			}),
			liberty("login-first", "wants a login before sessions, under an id of its own", "AUTH-008", func(h *habits) {
				h.Logins, h.LoginFirst = []string{"chat-gpt"}, true
			}).takes("login"),
		),
		of("",
			liberty("capabilities-absent", "leaves out the capabilities that it lacks", "INIT-012 INIT-016",
				func(h *habits) { h.Unadvertised = true }),
			liberty("initialize-once", "refuses a second initialize", "INIT-019", func(h *habits) { h.Once = true }),
		),
		of("early code",
			liberty("early-is-internal", "answers requests before initialize with -32603", "RPC-003",
				func(h *habits) { h.EarlyCode = -32603 }),
			liberty("early-is-unknown", "answers requests before initialize with -32601", "RPC-003",
				func(h *habits) { h.EarlyCode = -32601 }),
		),
		of("unknown session",
			liberty("unknown-session-params", "answers for unknown sessions with -32602", "SESSION-023",
				func(h *habits) { h.UnknownCode = -32602 }),
			liberty("unknown-session-internal", "answers for unknown sessions with -32603", "SESSION-023",
				func(h *habits) { h.UnknownCode = -32603 }),
		),
		of("", liberty("unknown-value-internal", "answers for unknown modes and values with -32603", "MODE-008 CONFIG-015",
			func(h *habits) { h.ValueCode = -32603 })),
	)
}

func lacking(names ...string) func(h *habits) {
	return func(h *habits) { h.Without = append(h.Without, names...) }
}
