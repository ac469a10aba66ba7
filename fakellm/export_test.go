package fakellm

import "slices"

// Keys are what the parser takes, for the comparison with the JSON Schema.
func Keys() map[string][]string {
	keys := map[string][]string{"": scriptKeys, "fail": faultKeys}
	for _, o := range stepOptions {
		keys[o.key+"Step"] = append([]string{o.key}, o.options...)
	}
	for _, k := range keys {
		slices.Sort(k)
	}
	return keys
}
