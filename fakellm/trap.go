package fakellm

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"time"

	"github.com/acp-test/acp-test/transcript"
)

// Egress is the kind of the transcript entry for a connection that the trap refused. The entry has the method, host
// and path. Its source is transcript.Process, because an agent's process made the connection.
const Egress transcript.Kind = "egress"

// Trap is a proxy for HTTP and HTTPS. Its URL is the value for HTTP_PROXY and HTTPS_PROXY. It refuses and records
// connections to other machines, and forwards connections to loopback. It sees only the connections of programs that
// honour a proxy setting.
type Trap struct {
	listening
	log     *transcript.Transcript
	reach   []string
	tunnels sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// StartTrap starts a trap on a free port of loopback. It records refused connections in t, unless t is nil. If reach
// contains loopback addresses (host:port), the trap forwards only connections to these addresses.
func StartTrap(t *transcript.Transcript, reach ...string) (*Trap, error) {
	p := &Trap{log: t, reach: reach, open: map[net.Conn]struct{}{}}
	if err := p.listen("127.0.0.1:0", http.HandlerFunc(p.serve)); err != nil {
		return nil, fmt.Errorf("starting the trap for outside connections: %w", err)
	}
	return p, nil
}

// Close ends the trap and all its connections.
func (p *Trap) Close() error {
	err := p.shut("trap")
	p.mu.Lock()
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.tunnels.Wait()
	return err
}

func (p *Trap) serve(w http.ResponseWriter, r *http.Request) {
	host := r.Host
	if r.URL.Host != "" {
		host = r.URL.Host
	}
	switch {
	case !p.passes(host):
		p.refuse(w, r, host)
	case r.Method == http.MethodConnect:
		p.tunnel(w, host)
	case r.URL.Host == "":
		http.Error(w, "this is a proxy", http.StatusBadRequest)
	default:
		(&httputil.ReverseProxy{
			Rewrite:       func(*httputil.ProxyRequest) {},
			Transport:     &http.Transport{DisableKeepAlives: true},
			FlushInterval: -1,
			ErrorLog:      log.New(io.Discard, "", 0),
		}).ServeHTTP(w, r)
	}
}

func (p *Trap) passes(host string) bool {
	if len(p.reach) > 0 {
		return slices.Contains(p.reach, host)
	}
	return isLoopback(host)
}

func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

func (p *Trap) refuse(w http.ResponseWriter, r *http.Request, host string) {
	if p.log != nil {
		p.log.Append(transcript.Entry{Source: transcript.Process, Kind: Egress, Raw: appendJSON(nil, object{
			{"method", r.Method}, {"host", host}, {"path", r.URL.Path}, {"seen_by", "proxy"},
		})})
	}
	http.Error(w, "acp-test lets no agent out: "+host+" was refused", http.StatusForbidden)
}

// tunnel connects the client to a server on this machine and copies bytes in both directions.
func (p *Trap) tunnel(w http.ResponseWriter, host string) {
	server, err := net.DialTimeout("tcp", host, 10*time.Second)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		server.Close()
		return
	}
	fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	p.tunnels.Add(2)
	p.mu.Lock()
	p.open[client], p.open[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	join := func(to, from net.Conn) {
		defer p.tunnels.Done()
		_, _ = io.Copy(to, from) // ignored, because either end may close at any time
		to.Close()
		from.Close()
		p.mu.Lock()
		delete(p.open, from)
		p.mu.Unlock()
	}
	go join(client, server)
	go join(server, client)
}
