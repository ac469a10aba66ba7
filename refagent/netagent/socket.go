package netagent

import (
	"bytes"
	"crypto/rand"
	"net/http"

	"github.com/coder/websocket"
)

// socket serves a connection by a WebSocket.
func (s *server) socket(w http.ResponseWriter, r *http.Request) {
	id := rand.Text()
	w.Header().Set(connectionHeader, id)
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // own has looked
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(mostBody)
	c := s.begin(r, id, func(frame []byte) { _ = ws.Write(s.ctx, websocket.MessageText, frame) })
	defer c.end()
	go func() {
		<-c.done
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}()
	begun := false
	for {
		kind, data, err := ws.Read(s.ctx)
		if err != nil {
			return
		}
		if kind != websocket.MessageText {
			continue
		}
		line := bytes.ReplaceAll(data, []byte("\n"), []byte(" "))
		m, ok := read(line)
		switch {
		case begun || !ok:
		case m.Method != "initialize":
			_ = ws.Close(websocket.StatusProtocolError, "First message must be initialize")
			return
		case !m.named():
			_ = ws.Close(websocket.StatusProtocolError, "Initialize needs an id")
			return
		default:
			begun = true
		}
		c.deliver(m, line)
	}
}
