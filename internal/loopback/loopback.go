// Package loopback protects HTTP servers on the loopback interface from web
// pages. A browser can reach them too, under a name that resolves to this machine
// or by a form.
package loopback

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Guard answers requests that do not come from a program on this machine with
// status 403 and the reason, and passes all others to h.
func Guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := foreign(r); why != "" {
			http.Error(w, "acp-test: this server answers "+why, http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// foreign returns the reason to refuse a request whose Host header or web page
// is not of this machine; "" accepts it.
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

// Local reports whether a Host header names this machine: a loopback address, or
// a name that only this machine resolves to itself.
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
		return true // the name in containers for the machine they run on
	}
	return false
}
