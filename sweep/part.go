package sweep

import "hash/fnv"

// Part is one of several jobs that share a sweep. Which schedules it has depends on nothing
// but the schedule, so that no two have the same.
type Part struct {
	Index, Of int // from 1
}

// has reports whether a schedule is of the part.
func (p *Part) has(s Schedule) bool {
	if p == nil || p.Of < 2 {
		return true
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.key()))
	return int(h.Sum32()%uint32(p.Of)) == p.Index-1
}

// most is how many of a number of schedules the part has at most.
func (p *Part) most(all int) int {
	if p == nil || p.Of < 2 || all == 0 {
		return all
	}
	share := all / p.Of
	if p.Index <= all%p.Of {
		share++
	}
	return max(share, 1)
}

// key tells a schedule from others of a sweep.
func (s Schedule) key() string {
	if s.Drawn != "" {
		return s.Drawn
	}
	return s.id()
}
