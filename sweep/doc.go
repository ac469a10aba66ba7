// Package sweep finds ordering and cancellation bugs without being told where.
// A baseline run of a scenario shows the points at which an editor could act;
// each point with each action is written as a scenario of its own, run and
// judged: in a fresh process, or in one that it shares with others. What fails
// is repeated, shrunk and kept as a file that runs like any other. One seed
// decides every order.
package sweep
