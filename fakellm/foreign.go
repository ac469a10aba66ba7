package fakellm

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// foreign says why a request is none of an agent on this machine, "" if it may be one:
// a web page in a browser can reach a server on loopback too, under a name that leads
// there or by a form.
func foreign(r *http.Request) string {
	if !local(r.Host) {
		return "acp-test: this server answers to localhost and to addresses, not to the name " + r.Host
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return "acp-test: this server answers no page of another site"
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "null" {
		if u, err := url.Parse(origin); err != nil || !local(u.Host) {
			return "acp-test: this server answers no page of " + origin
		}
	}
	return ""
}

// local reports whether a Host header names this machine: an address, which no other
// name can stand for, or a name that only this machine resolves to itself.
func local(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	switch {
	case name == "", net.ParseIP(name) != nil, name == "localhost", strings.HasSuffix(name, ".localhost"):
		return true
	case name == "host.docker.internal", name == "host.containers.internal":
		return true // what containers call the machine they run on
	}
	return false
}
