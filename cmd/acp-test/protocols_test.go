package main

import "testing"

// What users call the protocols is said twice; see protocolNames.
func TestProtocolNames(t *testing.T) {
	names := protocolNames()
	for i, p := range protocols() {
		if i >= len(names) || names[i] != p.Name {
			t.Errorf("protocol %d is %s, and its name is not in %q", i, p.Name, names)
		}
	}
	if len(names) != len(protocols()) {
		t.Errorf("%q names more than there are", names)
	}
}
