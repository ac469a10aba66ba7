package inspector

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ofTrace answers a request of the page about one transcript.
func (s *Server) ofTrace(w http.ResponseWriter, name string, t *trace, q url.Values) error {
	switch name {
	case "columns":
		return send(w, octets, t.columns(number(q, "from"), number(q, "names"), number(q, "generation")))
	case "rows":
		return s.rows(w, t, q)
	case "raw":
		e, _, err := t.entry(number(q, "seq"))
		if err != nil {
			return err
		}
		return send(w, octets, e.Raw)
	case "fields":
		var f Fields // the zero value means that no types are known
		if of := t.protocolOf(); of.Fields != nil {
			f = of.Fields()
		}
		return reply(w, f)
	case "find":
		w.Header().Set("Content-Type", octets)
		return binary.Write(w, binary.LittleEndian, t.find(q.Get("text"), number(q, "from")))
	}
	file, err := t.open()
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() > mostJudged {
		return cmp.Or(err, fmt.Errorf("the page does not judge transcripts of more than %d bytes: use acp-test check",
			mostJudged))
	}
	if name == "canonical" {
		text, err := s.Canonical(file)
		if err != nil {
			return err
		}
		return send(w, plainText, []byte(text))
	}
	result, err := s.Judge(q.Get("file"), file)
	if err != nil {
		return err
	}
	return reply(w, result)
}

// number returns a numeric parameter of a request, or 0 if it is missing.
func number(q url.Values, name string) int {
	n, _ := strconv.Atoi(q.Get(name))
	return n
}

// rows answers with the texts of entries: the entries listed in "seqs", or those with Seqs from "from" to "to", at
// most mostRows.
func (s *Server) rows(w http.ResponseWriter, t *trace, q url.Values) error {
	var wanted []int
	for word := range strings.SplitSeq(q.Get("seqs"), ",") {
		if seq, err := strconv.Atoi(word); err == nil {
			wanted = append(wanted, seq)
		}
	}
	from := number(q, "from")
	n, _ := t.length()
	for seq := from; from > 0 && seq <= min(number(q, "to"), n) && len(wanted) < mostRows; seq++ {
		wanted = append(wanted, seq)
	}
	rows := [][]any{}
	for _, seq := range wanted[:min(len(wanted), mostRows)] {
		e, of, err := t.entry(seq)
		if err != nil {
			return err
		}
		text, cut := raw(e)
		rows = append(rows, []any{seq, of.line(e), text, cut})
	}
	return reply(w, rows)
}

// columns returns the records with an index of at least from, and the names with an index of at least named. If
// generation is out of date, it returns all from 0. The result is in the binary form that the page reads: the length
// of a JSON object, that object, then the columns of the records one after the other.
func (t *trace) columns(from, named, generation int) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if generation != t.generation {
		from, named = 0, 0
	}
	named = min(max(named, 0), len(t.names.list))
	from = min(max(from, 0), len(t.records))
	part := t.records[from:min(len(t.records), from+mostColumn)]
	about, _ := json.Marshal(map[string]any{"from": from, "n": len(part), "known": len(t.records),
		"named": named, "names": append([]string{}, t.names.list[named:]...),
		"generation": t.generation, "more": !t.atEnd || from+len(part) < len(t.records), "problem": t.problem,
		"skipped": t.skipped, "scenario": t.head.Scenario, "agent": t.head.Agent, "started": t.head.Started,
		"protocol": t.head.Protocol, "tool": t.head.Tool})
	for (4+len(about))%8 != 0 {
		about = append(about, ' ')
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(about)))
	b = append(b, about...)
	for _, r := range part {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.at))
	}
	for _, of := range []func(record) uint32{
		func(r record) uint32 { return r.ref }, func(r record) uint32 { return r.size },
	} {
		for _, r := range part {
			b = binary.LittleEndian.AppendUint32(b, of(r))
		}
	}
	for _, of := range []func(record) uint16{
		func(r record) uint16 { return r.source }, func(r record) uint16 { return r.kind },
		func(r record) uint16 { return r.method }, func(r record) uint16 { return r.label },
		func(r record) uint16 { return r.session }, func(r record) uint16 { return r.origin },
	} {
		for _, r := range part {
			b = binary.LittleEndian.AppendUint16(b, of(r))
		}
	}
	return b
}

// events streams events until the page closes the request: one whenever the transcript grows, and one whenever the
// sources no longer match the state that the page has.
func (s *Server) events(w http.ResponseWriter, r *http.Request, q url.Values) error {
	var t *trace
	if q.Get("file") != "" {
		var err error
		if t, err = s.trace(q.Get("source"), q.Get("file")); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	tick := time.NewTicker(fileEvery)
	defer tick.Stop()
	runs, told := q.Get("state"), ""
	for n := 0; ; n++ {
		if n%treeEvery == 0 {
			if now := s.state(); now != runs {
				if runs != "" {
					fmt.Fprintf(w, "event: runs\ndata: {}\n\n")
				}
				runs = now
			}
		}
		if t != nil {
			t.grow(fileEvery)
			length, generation := t.length()
			if now := fmt.Sprintf("{\"n\":%d,\"generation\":%d}", length, generation); now != told {
				fmt.Fprintf(w, "event: trace\ndata: %s\n\n", now)
				told = now
			}
		}
		if err := out.Flush(); err != nil {
			return nil // the page has closed the request
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

// text answers with a text file of a source.
func (s *Server) text(w http.ResponseWriter, q url.Values) error {
	file, err := s.file(q.Get("source"), q.Get("file"))
	if err != nil {
		return err
	}
	defer file.Close()
	w.Header().Set("Content-Type", plainText)
	_, err = io.Copy(w, io.LimitReader(file, mostFile))
	return err
}
