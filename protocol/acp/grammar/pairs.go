package grammar

// Pairs returns all pairs, such as a state and an act, that conversations with the agent can cover.
func (g Grammar) Pairs() (out [][2]string) {
	w := newWriter(g.Ability)
	w.out = map[string]bool{}
	w.setUpAll()
	add := func(a, b string) { out = append(out, [2]string{a, b}) }
	c := &convo{name: "s", solid: true, servers: w.served()}
	for _, s := range states {
		if !s.can(w, c) {
			continue
		}
		t := &turn{convo: c, prompt: "P", state: s.name, endless: s.endless}
		w.open = []*turn{t}
		for _, a := range w.can(t, false) {
			add(s.name, a.Name)
		}
		w.open = nil
		for _, a := range answersOf[s.name] {
			add(s.name, "answer "+a.name)
		}
		if s.name == "question open" {
			for _, f := range fillings {
				if f.reaches == "" || w.Tools["ask_user"].Tells {
					add(s.name, "answer "+f.name)
				}
			}
		}
		if len(answersOf[s.name]) > 0 {
			add(s.name, "answer late")
		}
	}
	for _, a := range w.can(&turn{convo: c}, true) {
		add("idle", a.Name)
	}
	if len(w.Modes) > 0 {
		add("idle", "set mode")
	}
	if len(w.Options) > 0 {
		add("idle", "set option")
		if w.has("several") {
			add("idle", besideOther)
		}
	}
	w.answerPairs(add)
	w.shapePairs(add)
	w.wayPairs(add)
	w.keptPairs(add)
	return out
}

// answerPairs adds pairs for the answers to a permission request, and to a second request about the same call.
func (w *writer) answerPairs(add func(a, b string)) {
	kinds := map[string]bool{}
	for _, tool := range w.askers() {
		for _, k := range w.Tools[tool].Choices {
			if !kinds[k] {
				kinds[k] = true
				add("permission open", "answer "+k)
				if tool != "mcp" {
					add("asked twice", k)
				}
			}
		}
	}
	if len(kinds) > 0 {
		for _, how := range notOffered {
			add("permission open", "answer "+how)
			if kinds["allow_once"] && len(w.rewriters()) > 0 {
				add("asked twice", afterYes+how)
			}
		}
	}
}

// shapePairs adds pairs for the shapes of prompts and calls, and for the ways in which the model ends a turn.
func (w *writer) shapePairs(add func(a, b string)) {
	add("prompt", "text")
	for _, b := range blocks {
		if b.needs == "" || w.able(b.needs) {
			add("prompt", b.shape)
		}
	}
	for _, s := range shapes() {
		if w.works(s.Tool) {
			add("call", s.Name)
		}
	}
	if w.works("mcp") {
		add("call", twinCall)
	}
	if w.has("several") && w.works("plan") {
		add("call", planAgain)
	}
	for _, how := range endings {
		if how != "length in a call" || w.works("run_shell") {
			add("ending", how)
		}
	}
	add("reply", "in one event")
	add("reply", "with its usage")
	add("reply", "without usage")
	for _, f := range failures {
		add("failure", f)
	}
}

// wayPairs adds each way to reopen a session, paired with the session's setting.
func (w *writer) wayPairs(add func(a, b string)) {
	settings := []string{"plain"}
	if w.works("mcp") {
		settings = append(settings, "servers")
	}
	if len(w.Modes) > 0 {
		settings = append(settings, "mode")
	}
	if w.works("mcp") && w.has("several") {
		for _, order := range bareOrders {
			add("servers apart", order)
		}
	}
	if w.able(moreFolders) && w.works("read_file") {
		add("new", extraFolder)
		add("new", laterFolder)
	}
	for _, how := range []string{"load", "resume"} {
		if w.ways(how) && w.works("read_file") {
			add(how, otherFolder)
		}
		if w.ways(how) && w.works("mcp") {
			add(how, withoutServers)
		}
	}
	for _, s := range settings {
		if s != "mode" && w.ways("resume") {
			add("resume", s)
		}
		if w.ways("load") {
			add("load", s)
		}
		if s != "mode" && w.ways("fork") {
			add("fork", s)
		}
	}
}
