package aguiproto

import (
	"bytes"

	"github.com/acp-test/acp-test/wire"
)

// object is a JSON object while it is written.
type object struct {
	names  []string
	values map[string][]byte
}

func (o *object) text(name, value string) { o.raw(name, wire.AppendString(nil, value)) }

func (o *object) raw(name string, value []byte) {
	if o.values == nil {
		o.values = map[string][]byte{}
	}
	if _, again := o.values[name]; !again {
		o.names = append(o.names, name)
	}
	o.values[name] = value
}

func (o *object) end() []byte {
	var b bytes.Buffer
	for i, name := range o.names {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(wire.AppendString(nil, name))
		b.WriteByte(':')
		b.Write(o.values[name])
	}
	if len(o.names) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes()
}
