package scenarios

// Conclude fills in what follows from the results of a run that no engine made,
// such as that of a recording: counts, verdict, advice and exit status.
func (run *Run) Conclude() {
	run.sum()
	run.finish()
}
