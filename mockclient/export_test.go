package mockclient

// Decide is a policy's answer to a request with these options, id to kind: the
// chosen id, "" if none, and whether the decision was noted.
func (p *Policy) Decide(session, kind, title string, offered [][2]string) (chosen string, noted bool) {
	a := ask{session: session, kind: kind, title: title}
	for _, o := range offered {
		a.options = append(a.options, option{o[0], o[1]})
	}
	d := p.decide(a)
	return d.chosen, d.note != nil
}
