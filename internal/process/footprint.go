package process

// Footprint is what processes hold of the machine.
type Footprint struct {
	Processes, Descriptors int
	Memory                 int // of their own, without what files are mapped to; in bytes
}

// FootprintOf sums up what processes hold. ok is false if that cannot be told of any of
// them: they are gone or others', or this is not Linux.
func FootprintOf(pids []int) (sum Footprint, ok bool) {
	for _, pid := range pids {
		if memory, descriptors, ok := holds(pid); ok {
			sum.Processes++
			sum.Memory += memory
			sum.Descriptors += descriptors
		}
	}
	return sum, sum.Processes > 0
}
