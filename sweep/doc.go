// Package sweep finds ordering and cancellation bugs without a separate test for each. A baseline run of a scenario
// shows the points at which an editor could act. Each combination of a point and an action becomes a scenario, which
// is run and judged in its own process or in one that it shares with others. A failure is repeated, shrunk and saved
// as a scenario file. The seed determines the order of everything.
package sweep
