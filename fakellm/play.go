package fakellm

import (
	"cmp"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/transcript"
	"github.com/acp-test/acp-test/wire"
)

// player sends one answer, one op after the other.
type player struct {
	*exchange
	a   *answer
	enc encoder
	// next is the fault that cuts the next event in half: "disconnect" or "truncate". "" means no fault.
	next        string
	contentType string
	malformed   string // the kind of malformed body, if the answer is not streamed
}

// errOver is returned after a fault has ended the answer.
var errOver = errors.New("over")

func (x *exchange) play(a *answer) {
	p := &player{exchange: x, a: a, enc: x.route.format.encoder(x.request, a)}
	if a.whole {
		p.enc = inOneEvent{p.enc}
	}
	x.said = a.said
	defer func() {
		a.said, x.said = x.said, nil
		x.s.answers.Put(a)
	}()
	var err error
	for i := 0; i < len(a.ops) && err == nil; i++ {
		if err = p.do(&a.ops[i]); err == nil {
			err = x.out.spill()
		}
	}
	if err == nil {
		// Log the end before the last write, so that the entry precedes the client's reaction to it.
		x.done(x.out.status, "", member{"stop", string(a.stop)})
		err = x.out.last()
	}
	switch {
	case err == nil, errors.Is(err, errOver):
	case errors.Is(err, errClosed):
		x.out.cut()
	default:
		x.aborted()
		x.out.cut()
	}
}

func (p *player) do(o *op) error {
	switch o.kind {
	case opGate:
		return p.gate(o.text)
	case opWait:
		if err := p.out.flush(); err != nil {
			return err
		}
		return p.out.wait(o.wait)
	case opFault:
		return p.fault(o.fault)
	}
	if !p.request.stream {
		return p.whole(o)
	}
	from := len(p.out.buf)
	bl := (*block)(nil)
	if len(p.a.blocks) > 0 {
		bl = &p.a.blocks[o.block]
	}
	switch o.kind {
	case opOpen:
		p.out.begin(http.StatusOK, cmp.Or(p.contentType, p.enc.contentType()), -1)
		p.out.buf = p.enc.open(p.out.buf)
	case opStart:
		p.out.buf = p.enc.start(p.out.buf, bl)
	case opPiece:
		p.out.buf = p.enc.piece(p.out.buf, bl, o.text)
		p.chunk(bl.kind, o.text)
	case opEnd:
		p.out.buf = p.enc.end(p.out.buf, bl)
		p.late(bl)
	case opClose:
		p.out.buf = p.enc.close(p.out.buf)
	}
	if p.next != "" && len(p.out.buf) > from {
		p.out.buf = p.out.buf[:from+(len(p.out.buf)-from)/2]
		return p.end()
	}
	return nil
}

// whole handles one op of an answer that is sent as a single body.
func (p *player) whole(o *op) error {
	switch o.kind {
	case opPiece:
		p.chunk(p.a.blocks[o.block].kind, o.text)
	case opEnd:
		p.late(&p.a.blocks[o.block])
	case opClose:
		body := p.enc.whole(nil)
		switch p.malformed {
		case "sse":
			body = body[:len(body)/2]
		case "shape":
			body = []byte(`{"unexpected":true}`)
		}
		length := len(body)
		if p.next != "" {
			body = body[:length/2]
			if p.next == "truncate" {
				length = len(body)
			}
		}
		p.out.begin(http.StatusOK, cmp.Or(p.contentType, "application/json"), length)
		p.out.buf = append(p.out.buf, body...)
		if p.next != "" {
			return p.end()
		}
	}
	return nil
}

// chunk counts a chunk. If there is a transcript, it also stores the chunk, which the method told logs before it is
// sent.
func (p *player) chunk(kind StepKind, s string) {
	p.chunks++
	if p.s.cfg.Transcript != nil {
		p.said = append(p.said, spokenChunk{kind, s})
	}
}

// late logs a late text as if it were one chunk. It does nothing for other blocks.
func (p *player) late(bl *block) {
	if bl.late {
		p.chunk(bl.kind, bl.text)
	}
}

func (p *player) gate(name string) error {
	if err := p.out.flush(); err != nil {
		return err
	}
	open := p.s.reach(name, p.n, p.session)
	if open == nil {
		return nil
	}
	err := until(p.out, open)
	if err != nil {
		p.s.leave(name, p.n)
	}
	return err
}

// end carries out the fault in p.next, after half of an event has been written.
func (p *player) end() error {
	p.done(p.out.status, p.next)
	if err := p.out.flush(); err != nil {
		return err
	}
	if p.next == "disconnect" {
		if !p.out.stream {
			_ = p.out.rc.Flush() // so that the half arrives; after an error, the cut follows anyway
		}
		p.out.cut()
	}
	return errOver
}

// fault logs and carries out a fault of the script.
func (p *player) fault(f *Fail) error {
	p.event(transcript.ModelFault, member{"fault", f.describe()}, member{"chunks", p.chunks}, member{"line", f.Line})
	if f.Slow != nil {
		if err := p.out.flush(); err != nil {
			return err
		}
		p.out.slow = f.Slow
	}
	if f.ContentType != "" {
		p.contentType = f.ContentType
	}
	for _, h := range f.Headers {
		if !p.out.begun {
			p.out.w.Header().Set(h[0], h[1])
		}
	}
	if f.Malformed != "" {
		p.malform(f.Malformed)
	}
	if f.Comment != "" && p.request.stream {
		p.out.begin(http.StatusOK, cmp.Or(p.contentType, p.enc.contentType()), -1)
		p.out.buf = append(p.out.buf, ": "+f.Comment+"\n\n"...)
	}
	switch {
	case f.Hang:
		if err := p.out.flush(); err != nil {
			return err
		}
		return until[struct{}](p.out, nil)
	case f.Disconnect == "now":
		p.done(p.out.status, "disconnect")
		if err := p.out.flush(); err != nil {
			return err
		}
		p.out.cut()
	case f.Disconnect != "":
		p.next = "disconnect"
	case f.Truncate == "end":
		if !p.request.stream {
			p.next = "truncate"
			return nil
		}
		p.out.begin(http.StatusOK, cmp.Or(p.contentType, p.enc.contentType()), -1)
		p.done(p.out.status, "truncate")
		return cmp.Or(p.out.flush(), errOver)
	case f.Truncate != "":
		p.next = "truncate"
	case f.Status != 0 || f.Body != nil:
		return p.status(f)
	}
	return nil
}

func (p *player) malform(how string) {
	p.malformed = how
	if !p.request.stream {
		return
	}
	event := `{"id":"broken`
	if how == "shape" {
		event = `{"unexpected":true}`
	}
	p.out.begin(http.StatusOK, cmp.Or(p.contentType, p.enc.contentType()), -1)
	p.out.buf = p.enc.event(p.out.buf, event)
}

// status answers with an HTTP error. If the answer has already begun, it reports the error inside the stream.
func (p *player) status(f *Fail) error {
	pr := &problem{status: f.Status, kind: f.Type, message: f.Message}
	pr.status = cmp.Or(pr.status, http.StatusOK)
	if pr.message == "" {
		pr.message = "The script says to answer with status " + strconv.Itoa(pr.status) + "."
	}
	if p.out.begun {
		p.out.buf = p.enc.fail(p.out.buf, pr)
		p.done(p.out.status, pr.message)
		return cmp.Or(p.out.flush(), errOver)
	}
	if f.HasRetryAfter {
		h := p.out.w.Header()
		h.Set("Retry-After", strconv.Itoa(int((f.RetryAfter+time.Second-1)/time.Second)))
		h.Set("Retry-After-Ms", strconv.Itoa(int(f.RetryAfter/time.Millisecond)))
	}
	body := p.route.format.problem(pr)
	if f.Body != nil {
		body = encoded(*f.Body, f.ContentType)
	}
	p.send(pr.status, body, cmp.Or(p.contentType, "application/json"), pr.message)
	return errOver
}

// encoded returns a body in ISO 8859-1 if the content type says so, and else in UTF-8.
func encoded(body, contentType string) (out []byte) {
	if !strings.Contains(strings.ToLower(contentType), "iso-8859-1") {
		return []byte(body)
	}
	for _, r := range body {
		out = append(out, byte(r))
	}
	return out
}

// describe names a fault for the transcript entry.
func (f *Fail) describe() string {
	switch {
	case f.Hang:
		return "hang"
	case f.Disconnect != "":
		return "disconnect " + f.Disconnect
	case f.Truncate != "":
		return "truncate " + f.Truncate
	case f.Status != 0:
		return "status " + strconv.Itoa(f.Status)
	case f.Malformed != "":
		return "malformed " + f.Malformed
	case f.Body != nil:
		return "body"
	case f.Slow != nil:
		return "slow"
	case f.Comment != "":
		return "comment"
	}
	return "content type " + f.ContentType
}

// spokenChunk is a chunk of an answer, with the kind of its step and its text.
type spokenChunk struct {
	kind StepKind
	text string
}

// told appends the transcript entries of the chunks that are about to be sent. Adjacent chunks of the same kind that
// are sent in one write share an entry. The entries are built without encoding/json, because long replies have many
// of them.
func (x *exchange) told() {
	for from := 0; from < len(x.said); {
		kind, to := x.said[from].kind, from+1
		size := len(x.said[from].text)
		for ; to < len(x.said) && x.said[to].kind == kind; to++ {
			size += len(x.said[to].text) + len(`"",`)
		}
		raw := make([]byte, 0, size+size/8+64)
		raw = append(raw, `{"n":`...)
		raw = strconv.AppendInt(raw, int64(x.n), 10)
		raw = append(raw, `,"i":`...)
		raw = strconv.AppendInt(raw, int64(x.chunks-len(x.said)+from+1), 10)
		raw = append(raw, `,"says":"`...)
		raw = append(raw, spoken[kind]...)
		raw = append(raw, `","data":`...)
		raw = appendTexts(raw, x.said[from:to])
		x.s.cfg.Transcript.Events(0, transcript.Model, transcript.ModelChunk, x.session, append(raw, '}'))
		from = to
	}
	clear(x.said)
	x.said = x.said[:0]
}

// appendTexts appends the text of a single chunk as a JSON string, and the texts of several chunks as a JSON list.
func appendTexts(b []byte, chunks []spokenChunk) []byte {
	if len(chunks) == 1 {
		return wire.AppendString(b, chunks[0].text)
	}
	b = append(b, '[')
	for i, c := range chunks {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, c.text)
	}
	return append(b, ']')
}

// ChunkTexts yields the texts of the chunks in a ModelChunk entry.
func ChunkTexts(details wire.Value) iter.Seq[string] {
	return func(yield func(string) bool) {
		data := details.Get("data")
		if data.Kind() != wire.Array {
			yield(data.Str())
			return
		}
		for text := range data.Items() {
			if !yield(text.Str()) {
				return
			}
		}
	}
}

// ChunkText returns the joined texts of the chunks in a ModelChunk entry.
func ChunkText(details wire.Value) string {
	return strings.Join(slices.Collect(ChunkTexts(details)), "")
}
