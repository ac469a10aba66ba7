package main

import "testing"

// The table can be read, and each kind has rules.
func TestKinds(t *testing.T) {
	list, err := readKinds()
	if err != nil || len(list) < 40 {
		t.Fatalf("%d kinds, %v", len(list), err)
	}
	for _, k := range list {
		if k.Empty() {
			t.Errorf("%s has no rules", k.Name)
		}
	}
}
