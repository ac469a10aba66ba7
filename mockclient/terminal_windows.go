package mockclient

// Windows has no real terminals here.

func (l *ledger) startReal(r *Request, _ *terminal, _ []string, _ string, _ []string) {
	r.Fail(codeInternal, "real terminals are not available on Windows")
}
