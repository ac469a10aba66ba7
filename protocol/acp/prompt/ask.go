package prompt

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-test/acp-test/internal/lists"
	"github.com/acp-test/acp-test/mockclient"
	"github.com/acp-test/acp-test/wire"
)

// permit is what a choice for always is about: tool calls of one kind and title. An
// agent may take it for more.
type permit struct{ kind, title string }

// offer is an option of a permission request.
type offer struct{ id, name, kind string }

func offersOf(options wire.Value) []offer {
	var list []offer
	for o := range options.Items() {
		if id := o.Get("optionId"); id.Kind() == wire.String {
			list = append(list, offer{id.Str(), o.Get("name").Str(), o.Get("kind").Str()})
		}
	}
	return list
}

// remembered is the option that the user chose for always, else "".
func (t *Client) remembered(call toolCall, offers []offer) string {
	if kind := t.always[permit{call.kind, call.title}]; kind != "" {
		return offered(offers, kind)
	}
	return ""
}

// offered is the id of the first option of a kind, else "".
func offered(offers []offer, kind string) string {
	return lists.First(offers, func(o offer) bool { return o.kind == kind }).id
}

// ask puts a permission request to the user, and answers it.
func (t *Client) ask(ctx context.Context, r *mockclient.Request, call toolCall, offers []offer) {
	t.asking.Lock()
	defer t.asking.Unlock()
	t.screen.await(ctx, r.Entry.Seq)
	t.mu.Lock()
	id := t.remembered(call, offers) // since a question before
	t.mu.Unlock()
	why := "as before"
	if id == "" {
		why = ""
		if chosen, ok := t.question(ctx, call, offers); ok {
			id = chosen.id
			if strings.HasSuffix(chosen.kind, "_always") {
				t.mu.Lock()
				t.always[permit{call.kind, call.title}] = chosen.kind
				t.mu.Unlock()
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answer(r, id, why)
}

// question asks until there is an answer. It is none if the input or ctx ends.
func (t *Client) question(ctx context.Context, call toolCall, offers []offer) (offer, bool) {
	if len(offers) == 0 {
		return offer{}, false
	}
	t.screen.tell("permission", fmt.Sprintf("%s (%s)?", OneLine(call.title), OneLine(call.kind)))
	list := lists.Map(call.paths, func(path string) string { return "about " + OneLine(under(t.options.Work, path)) })
	list = slices.Compact(slices.Sorted(slices.Values(list))) // one path may have two forms
	for i, o := range offers {
		list = append(list, fmt.Sprintf("%d  %s (%s)", i+1, OneLine(o.name), OneLine(o.kind)))
	}
	for _, d := range call.diffs {
		t.screen.diff(d)
	}
	t.screen.block(list)
	for {
		line, err := t.options.Console.answer(ctx, fmt.Sprintf("1-%d: ", len(offers)))
		if err != nil {
			return offer{}, false
		}
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && n >= 1 && n <= len(offers) {
			return offers[n-1], true
		}
	}
}
