package sabotage

import (
	"bytes"
	"time"

	"github.com/acp-test/acp-test/refagent/mutation"
	"github.com/acp-test/acp-test/transcript"
)

// Log applies mutations to the frames of a log and returns the resulting log. player returns the player for a
// connection.
func Log(log []transcript.Entry, player func(conn int) *mutation.Player) (out []transcript.Entry) {
	sides := [2]transcript.Source{mutation.Client: transcript.Agent, mutation.Agent: transcript.Editor} // by receiver
	put := func(e transcript.Entry, list []mutation.Output) {
		for _, o := range list {
			if o.Wait != nil || o.Exit {
				continue // a log has no timers and a fixed end
			}
			was := e
			if i, ok := o.Origin.(int); ok {
				was = log[i]
			} else {
				was.Seq = 0
			}
			if was.Raw, was.Source = o.Raw, sides[o.To]; o.Raw == nil {
				was.Raw = bytes.TrimSpace(o.Message.Encode())
			}
			out = append(out, was)
		}
	}
	last := map[*mutation.Player]transcript.Entry{}
	for i, e := range log {
		switch {
		case !e.Frame() || e.Source != transcript.Agent && e.Source != transcript.Editor:
			out = append(out, e)
			continue
		case e.Source == transcript.Agent:
			put(e, player(e.Conn).Play(mutation.Agent, e.Raw, i))
		default:
			put(e, player(e.Conn).Play(mutation.Client, e.Raw, i))
		}
		last[player(e.Conn)] = e
	}
	for p, e := range last {
		put(e, p.End())
	}
	return out
}

// Rebuild returns a transcript with the entries of a log that Log has returned. It corrects references between
// entries, but does not change times.
func Rebuild(h transcript.Header, c transcript.Classifier, log []transcript.Entry) (*transcript.Transcript, error) {
	var now time.Duration
	clock := func() time.Time { return time.Unix(0, 0).Add(now) }
	t, err := transcript.New(h, transcript.Options{Classifier: c, Now: clock})
	if err != nil {
		return nil, err
	}
	at := map[int]int{} // Seq in t, by Seq in log
	for _, e := range log {
		now = max(now, e.At)
		var added transcript.Entry
		if e.Frame() {
			added = t.AppendFrame(e.Conn, e.Source, e.Raw, 0)
		} else {
			e.Ref = at[e.Ref]
			added = t.Append(e)
		}
		at[e.Seq] = added.Seq
	}
	return t, nil
}

// Transcript returns a copy of t to which the mutation was applied, as if s had been between the editor and the
// agent.
func (s *Saboteur) Transcript(t *transcript.Transcript, c transcript.Classifier) (*transcript.Transcript, error) {
	players := map[int]*mutation.Player{}
	var log []transcript.Entry
	for e := range t.All() {
		log = append(log, e)
	}
	out := Log(log, func(conn int) *mutation.Player {
		if players[conn] == nil {
			players[conn] = s.Player()
		}
		return players[conn]
	})
	for _, p := range players {
		s.count(0, p.Acted())
	}
	return Rebuild(t.Header(), c, out)
}
