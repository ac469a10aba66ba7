package main

import (
	"strconv"

	"github.com/spf13/pflag"
)

// jobs is how many scenarios run at once; 0 adapts the number to the speed of the machine.
type jobs int

func (j *jobs) String() string {
	if *j == 0 {
		return "auto"
	}
	return strconv.Itoa(int(*j))
}

// Set implements pflag.Value.
func (j *jobs) Set(text string) error {
	n, err := strconv.Atoi(text)
	if text != "auto" && (err != nil || n < 1) {
		return strconv.ErrRange
	}
	*j = jobs(n)
	return nil
}

// Type implements pflag.Value.
func (*jobs) Type() string { return "jobs" }

func (j *jobs) flag(f *pflag.FlagSet) {
	f.VarP(j, "jobs", "j", "run `N` scenarios at once, or auto: as many as the processors have time for")
}
