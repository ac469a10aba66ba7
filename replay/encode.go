package replay

import "encoding/json"

// rawJSON is JSON that is marshalled as it is.
type rawJSON []byte

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

func marshal(v any) ([]byte, error) { return json.Marshal(v) }
