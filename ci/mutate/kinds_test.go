package main

import "testing"

// The table can be read, and each kind has rules.
func TestKinds(t *testing.T) {
	list := readKinds()
	if len(list) < 40 {
		t.Fatalf("%d kinds", len(list))
	}
	for _, k := range list {
		if k.Empty() {
			t.Errorf("%s has no rules", k.Name)
		}
	}
}
