package process

// Footprint is the resources that processes hold.
type Footprint struct {
	Processes, Descriptors int
	Memory                 int // anonymous memory, without mapped files; in bytes
}

// FootprintOf returns the sum of the resources that processes hold. ok is false
// if they are unknown for all of them: the processes are gone or another user's,
// or this is not Linux.
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
