package invariants

import (
	"net/url"
	"strings"
)

// elicitCare judges what elicitations ask for. It goes by words, so it only
// ever hints.
func elicitCare(v *version) *rule {
	r := v.ofAgent("ELICIT-CARE",
		"A form asks for no secrets and holds no links; a link holds no credentials and is https.")
	secret := r.Lint("secret", "a form seems to ask for a secret", "ELICIT-008")
	token := r.Lint("credentials-in-url", "a url seems to hold credentials", "ELICIT-020")
	scheme := r.Lint("not-https", "a url is neither https nor local", "ELICIT-021")
	clickable := r.Lint("url-in-form", "a form holds a url", "ELICIT-022")
	return r.Watching(func(w *watch) {
		w.On(func(ev *event) {
			p := ev.params
			if p.Get("mode").Is("form") {
				w.Saw(secret, clickable)
				text := strings.ToLower(string(p.Get("message").Raw()) + string(p.Get("requestedSchema").Raw()))
				for _, word := range []string{"password", "passwort", "api key", "api_key", "apikey", "secret", "cvv",
					"credit card", "access token"} {
					if strings.Contains(text, word) {
						w.find(secret, ev, word, nil, "The form speaks of %q; forms must not ask for secrets.", word)
						break
					}
				}
				if strings.Contains(text, "http://") || strings.Contains(text, "https://") {
					w.find(clickable, ev, "", nil, "The form holds a url; links belong into url mode.")
				}
				return
			}
			target, err := url.Parse(p.Get("url").Str())
			if err != nil || target.Scheme == "" {
				return
			}
			w.Saw(token, scheme)
			for key := range target.Query() {
				switch strings.ToLower(key) {
				case "access_token", "api_key", "apikey", "password", "token", "email":
					w.find(token, ev, key, nil, "The url of the elicitation holds the parameter %q.", key)
				}
			}
			if target.User != nil {
				w.find(token, ev, "user", nil, "The url of the elicitation holds a user name.")
			}
			if host := target.Hostname(); target.Scheme != "https" && host != "localhost" && host != "127.0.0.1" &&
				host != "::1" {
				w.find(scheme, ev, "", nil, "The url of the elicitation is %s, not https.", clip(target.Scheme))
			}
		}, asked(elicit))
	})
}
