package refagent

import (
	"encoding/json"
	"maps"
	"strings"
)

// provider is the id of the agent's only model provider. providerAPI is the type of the provider's API.
const provider, providerAPI = "main", "openai"

// endpoint is the address of a model's API, with extra headers for requests.
type endpoint struct {
	base    string
	headers map[string]string
}

func (e *endpoint) url() string { return strings.TrimSuffix(e.base, "/") + "/chat/completions" }

// providers adds the methods by which an editor configures the model's address, if the agent supports them.
func (a *agent) providers(methods map[string]handler) {
	if !a.provides() {
		return
	}
	methods["providers/list"] = func(r *request, _ json.RawMessage) *rpcError {
		p := object{"providerId": provider, "supported": []string{providerAPI}, "required": true}
		if e := a.model.at.Load(); e != nil {
			p["current"] = object{"apiType": providerAPI, "baseUrl": e.base}
		}
		a.conn.respond(r, object{"providers": []any{p}}, nil)
		return nil
	}
	methods["providers/set"] = func(r *request, params json.RawMessage) *rpcError {
		var p struct {
			ProviderID, APIType, BaseURL string
			Headers                      map[string]string
		}
		if err := decodeParams(params, &p); err != nil {
			return err
		}
		if p.ProviderID != provider || p.APIType != providerAPI || p.BaseURL == "" {
			return badParams("providers/set takes a baseUrl for provider %q with apiType %q", provider, providerAPI)
		}
		a.model.at.Store(&endpoint{p.BaseURL, maps.Clone(p.Headers)})
		a.conn.respond(r, nil, nil)
		return nil
	}
	methods["providers/disable"] = func(r *request, params json.RawMessage) *rpcError {
		id, err := member(params, "providerId")
		if err == nil && id == provider {
			err = badParams("provider %q is required", id)
		}
		if err == nil {
			a.conn.respond(r, nil, nil)
		}
		return err
	}
}

// provides reports whether an editor may configure the model's address.
func (a *agent) provides() bool { return a.options.Getenv(EnvProviders) == "yes" }
