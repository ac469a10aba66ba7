// Package sweep finds ordering and cancellation bugs without a test for each. A
// baseline run of a scenario shows the points at which an editor could act.
// Each point with each action becomes its own scenario, run and judged, in a
// fresh process or in one shared with others. A failure is repeated, shrunk and
// kept as a file that runs like any other. One seed decides every order.
package sweep
