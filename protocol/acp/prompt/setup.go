package prompt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mistake"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/wire"
)

// servers returns the MCP servers that the agent supports. Each agent supports stdio; its capabilities name the other
// transports.
func (t *Client) servers() []any {
	return slices.DeleteFunc(slices.Clone(t.options.MCP), func(s any) bool {
		remote, ok := s.(mockclient.HTTPServer)
		capability := "agentCapabilities.mcpCapabilities." + remote.Type
		if !ok || t.editor.Info().Has(capability) {
			return false
		}
		t.screen.tell("mcp", OneLine(remote.Name)+" is left out: the agent does not advertise "+capability)
		return true
	})
}

// configure sets the mode, the model and the options that the user requested.
func (t *Client) configure(ctx context.Context) error {
	if mode := t.options.Mode; mode != "" {
		if err := t.setMode(ctx, mode); err != nil {
			return err
		}
	}
	if model := t.options.Model; model != "" {
		if err := t.setModel(ctx, model); err != nil {
			t.screen.tell("model", OneLine(fmt.Sprintf("default_model %s (settings) has no effect: %v", model, err)))
		}
	}
	for _, kv := range t.options.Settings {
		id, value, _ := strings.Cut(kv, "=")
		list := t.session.Result().Get("configOptions")
		option := list.Find("id", id)
		if !option.Exists() {
			return fmt.Errorf("--option %s: %s", kv, absent("option", id, ids(list, "id")))
		}
		if err := t.setOption(ctx, option, value); err != nil {
			return fmt.Errorf("--option %s: %w", kv, err)
		}
	}
	return nil
}

// setMode sets a mode. If the agent has no modes, it sets the config option of category mode.
func (t *Client) setMode(ctx context.Context, mode string) error {
	modes := t.session.Result().Path("modes.availableModes")
	if modes.Find("id", mode).Exists() {
		return t.session.SetMode(ctx, mode)
	}
	if option := t.session.Result().Get("configOptions").Find("category", "mode"); option.Exists() && modes.Len() == 0 {
		if err := t.setOption(ctx, option, mode); err != nil {
			return fmt.Errorf("--mode %s: %w", mode, err)
		}
		return nil
	}
	return fmt.Errorf("--mode %s: %s", mode, absent("mode", mode, ids(modes, "id")))
}

func (t *Client) setModel(ctx context.Context, model string) error {
	option := t.session.Result().Get("configOptions").Find("category", "model")
	if !option.Exists() {
		return errors.New("the agent offers no option of category \"model\"")
	}
	return t.setOption(ctx, option, model)
}

func (t *Client) setOption(ctx context.Context, option wire.Value, value string) error {
	id := option.Get("id").Str()
	if option.Get("type").Is("boolean") {
		if value != "true" && value != "false" {
			return fmt.Errorf("%q must be true or false, not %q", id, value)
		}
		_, err := t.session.SetConfigOption(ctx, id, value == "true")
		return err
	}
	var known []string
	for o := range option.Get("options").Items() {
		if group := o.Get("options"); group.Exists() {
			known = append(known, ids(group, "value")...)
			continue
		}
		known = append(known, o.Get("value").Str())
	}
	if !slices.Contains(known, value) {
		return fmt.Errorf("%s", absent("value", value, known))
	}
	_, err := t.session.SetConfigOption(ctx, id, value)
	return err
}

func ids(list wire.Value, key string) []string {
	return lists.Collect(list.Items(), func(v wire.Value) string { return OneLine(v.Get(key).Str()) })
}

// absent returns a sentence which says that the agent lacks a mode or option, and which ones the agent has.
func absent(what, name string, known []string) string {
	if len(known) == 0 {
		return "the agent has no " + what + "s in this session"
	}
	return fmt.Sprintf("the agent has no %s %q%s; it has %s", what, name, mistake.Meant(name, known),
		strings.Join(known, ", "))
}
