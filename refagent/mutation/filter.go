package mutation

import "bytes"

// Filter plays a mutation on the bytes between a client and an agent whose messages are lines.
// What no rule changes comes out as it came in, byte for byte. Its methods are not to be called
// at the same time.
type Filter struct {
	*Player
	rest [2][]byte // the beginning of a line, by side
}

// Filter returns a filter for one connection.
func (m *Mutation) Filter() *Filter { return &Filter{Player: m.Player()} }

// Pass takes bytes of one side, in pieces of any size, and returns what comes out once their
// lines are complete. Each output that is a message has its bytes in Raw.
func (f *Filter) Pass(from Side, p []byte) (out []Output) {
	f.rest[from] = append(f.rest[from], p...)
	for {
		end := bytes.IndexByte(f.rest[from], '\n')
		if end < 0 {
			return out
		}
		line := bytes.Clone(f.rest[from][:end+1])
		f.rest[from] = f.rest[from][end+1:]
		out = append(out, spelled(f.Play(from, line, nil))...)
	}
}

// Close tells that a side has no more bytes: its last line may lack the newline.
func (f *Filter) Close(from Side) []Output {
	line := f.rest[from]
	f.rest[from] = nil
	if len(line) == 0 {
		return nil
	}
	return spelled(f.Play(from, line, nil))
}

// Begin, End and Wake are those of Player, with the bytes of messages.
func (f *Filter) Begin() []Output { return spelled(f.Player.Begin()) }

// End tells that the connection is about to end.
func (f *Filter) End() []Output { return spelled(f.Player.End()) }

// Wake tells that a wait is over.
func (f *Filter) Wake(w *Wait) []Output { return spelled(f.Player.Wake(w)) }

// spelled gives each message its bytes.
func spelled(list []Output) []Output {
	for i, out := range list {
		if out.Message != nil && out.Raw == nil {
			list[i].Raw = out.Message.Encode()
		}
	}
	return list
}
