package process

// Footprint contains the resources that one or more processes use.
type Footprint struct {
	Processes, Descriptors int
	Memory                 int // anonymous memory in bytes, without mapped files
}

// FootprintOf returns the sum of the resources that processes use. It ignores processes whose resources are unknown.
// ok is false if all are unknown, because the processes are gone or belong to another user, or this is not Linux.
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
