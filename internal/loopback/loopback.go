// Package loopback protects HTTP servers on the loopback interface from web pages. A page in a browser can reach such
// servers through a host name that resolves to this machine, or by submitting a form.
package loopback

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Guard returns a handler that passes requests to h. It answers a request that is for another host name, or that
// comes from a web page of another site, with status 403 and the reason.
func Guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := foreign(r); why != "" {
			http.Error(w, "acp-test: this server answers "+why, http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// foreign returns the reason to refuse a request because its Host header or its web page does not belong to this
// machine. "" means that the request is accepted.
func foreign(r *http.Request) string {
	if !Local(r.Host) {
		return "only requests to localhost and to IP addresses, not to " + r.Host
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return "no requests from pages of another site"
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "null" {
		if u, err := url.Parse(origin); err != nil || !Local(u.Host) {
			return "no requests from pages of " + origin
		}
	}
	return ""
}

// Local reports whether a Host header names this machine: an IP address, or a name that always means this machine.
func Local(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	switch {
	case name == "", net.ParseIP(name) != nil, name == "localhost", strings.HasSuffix(name, ".localhost"):
		return true
	case name == "host.docker.internal", name == "host.containers.internal":
		return true // from a container, these names mean the machine it runs on
	}
	return false
}
