package invariants

import (
	"net/url"
	"strings"
)

// elicitCare judges what elicitations ask for. It goes by words, so it only
// ever hints.
func elicitCare(w *watch) {
	w.On(func(ev *event) {
		p := ev.params
		if p.Get("mode").Is("form") {
			w.Saw("secret", "url-in-form")
			text := strings.ToLower(string(p.Get("message").Raw()) + string(p.Get("requestedSchema").Raw()))
			for _, word := range []string{"password", "passwort", "api key", "api_key", "apikey", "secret", "cvv",
				"credit card", "access token"} {
				if strings.Contains(text, word) {
					w.find("secret", ev, word, nil, "The form speaks of %q; forms must not ask for secrets.", word)
					break
				}
			}
			if strings.Contains(text, "http://") || strings.Contains(text, "https://") {
				w.find("url-in-form", ev, "", nil, "The form holds a url; links belong into url mode.")
			}
			return
		}
		target, err := url.Parse(p.Get("url").Str())
		if err != nil || target.Scheme == "" {
			return
		}
		w.Saw("credentials-in-url", "not-https")
		for key := range target.Query() {
			switch strings.ToLower(key) {
			case "access_token", "api_key", "apikey", "password", "token", "email":
				w.find("credentials-in-url", ev, key, nil, "The url of the elicitation holds the parameter %q.", key)
			}
		}
		if target.User != nil {
			w.find("credentials-in-url", ev, "user", nil, "The url of the elicitation holds a user name.")
		}
		if host := target.Hostname(); target.Scheme != "https" && host != "localhost" && host != "127.0.0.1" &&
			host != "::1" {
			w.find("not-https", ev, "", nil, "The url of the elicitation is %s, not https.", clip(target.Scheme))
		}
	}, asked(elicit))
}
