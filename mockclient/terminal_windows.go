package mockclient

// Real terminals are not supported on Windows.

func (l *ledger) startReal(r *Request, _ *terminal, _ []string, _ string, _ []string) {
	r.Fail(codeInternal, "real terminals are not available on Windows")
}
