package words

import (
	"context"

	"github.com/acp-test/acp-test/scenarios"
)

// provide points an agent at the model server of the run by providers/set: each provider of it that speaks
// a protocol which the server speaks too.
func provide(ctx context.Context, b *scenarios.Branch) error {
	line := scenarios.Implied("start")
	list, err := call(ctx, b, line, nil, "providers/list", map[string]any{}, true)
	if err != nil {
		return err
	}
	base, err := b.Variable("LLM")
	if err != nil {
		return err
	}
	urls := map[string]string{"openai": base + "/v1", "anthropic": base}
	for p := range list.JSON().Path("result.providers").Items() {
		for api := range p.Get("supported").Items() {
			if urls[api.Str()] == "" {
				continue
			}
			_, err := call(ctx, b, line, nil, "providers/set", map[string]any{"providerId": p.Get("providerId").Str(),
				"apiType": api.Str(), "baseUrl": urls[api.Str()],
				"headers": map[string]string{"authorization": "Bearer sk-test", "x-api-key": "sk-test"}}, true)
			if err != nil {
				return err
			}
			break
		}
	}
	return nil
}
