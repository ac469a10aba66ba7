package schedules

import "github.com/acp-test/acp-test/sweep"

// hold is the gate that holds the model at the point.
const hold = sweep.Hold

var says, plain, gate = sweep.Says, sweep.Plain, sweep.Gate
