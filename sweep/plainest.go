package sweep

import (
	"context"
	"time"
)

// plainer takes deviations out of an order that was drawn, one at a time, while it shows
// the rule: what is left is written anew each time, so that it asks for nothing that does
// not follow.
func (x *reducer) plainer(sch Schedule) Schedule {
	most := x.Shrink
	if most <= 0 {
		most = 20 * time.Second
	}
	ctx, stop := context.WithTimeout(x.ctx, most)
	defer stop()
	for again := true; again && ctx.Err() == nil; {
		again = false
		for _, c := range sch.Simpler() {
			if ctx.Err() != nil {
				break
			}
			if x.shows(ctx, c.text()) {
				sch, again = c, true
				break
			}
		}
	}
	return sch
}
