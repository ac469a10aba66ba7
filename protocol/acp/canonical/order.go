package canonical

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/json"
	"slices"
)

// The canonical order.
//
// A section has the items of one session, or the items of the connection that belong to no session. Within a section,
// content keeps its order of arrival: messages, thoughts, plans, the first entry about each tool call, permission
// requests, requests to the editor, and the agent's answers. Requests and notifications of the editor keep their
// places among the content. Other items get a fixed order:
//
//   - Sections are independent of one another. They come in the order in which
//     their sessions were first requested. Items that belong to no session
//     (initialize, session/list, a malformed line) keep their places in all
//     sections.
//   - Later updates of tool calls that are open at the same time are grouped by
//     call, in the order of the calls.
//   - State updates (commands, mode, config, info, usage) keep their order for
//     each kind. Their time of arrival varies: agents often send commands while
//     the first prompt is on its way. So all state updates between the answers
//     to two prompts are shown together, just above the second answer. State
//     updates after the last answer come at the end. The answers to session/new,
//     load and resume separate state updates in the same way. The answers to
//     set_mode and set_config_option separate only modes and options.
//   - The time at which the editor answers varies too, so an answer is shown
//     just below its request. It moves down only past three kinds of items: an
//     update that starts or ends the tool call, a file written or a command
//     started for the call, and messages that the editor sent before the answer.
//     The first two prove that the agent did not wait for the answer.
//   - Items that the profile declares free come at the end, sorted by text.
//
// Two items are dependent if no rule above lets one pass the other. The canonical order keeps the order of dependent
// items. Otherwise it is as close as possible to the order by section, rank and number. So it depends only on the
// order of dependent items, not on the order of arrival.

// lane has, for one section, the last items that later items must follow. They are indexes; -1 stands for none.
type lane struct {
	strong   int            // the last content, act or item of the connection
	acted    int            // the last act
	opened   int            // the first act that opened the session
	updates  map[string]int // by call, the last update since strong
	states   map[string]int // by kind, the last state update
	gates    map[string]int // by kind, the last answer that separates state updates; "" stands for all kinds
	since    []int          // since the last act: items that show whether the agent waited for an answer
	answered map[int]int    // by request, the last answer
}

// orderer finds the dependencies between the items of one connection.
type orderer struct {
	items   []item
	lanes   map[int]*lane
	barrier int // the last item that belongs to no session
	related func(effect, answer *item) bool
	// inserted maps a prompt to the last item that shows that the agent has accepted the prompt.
	inserted map[int]int
}

// edge records that item a must come before item b.
func (o *orderer) edge(a, b int) {
	if a >= 0 && a != b {
		o.items[a].after = append(o.items[a].after, b)
		o.items[b].before++
	}
}

func (o *orderer) lane(n int) *lane {
	l := o.lanes[n]
	if l == nil {
		l = &lane{strong: o.barrier, acted: -1, opened: -1, updates: map[string]int{}, states: map[string]int{},
			gates: map[string]int{}, answered: map[int]int{}}
		o.lanes[n] = l
	}
	return l
}

// link adds all edges between the items.
func (o *orderer) link() {
	for i := range o.items {
		it := &o.items[i]
		switch {
		case it.role == free || it.role == end:
		case it.role == answer:
			o.answer(i)
		case it.role == inserted:
			o.edge(it.request, i)
			if before, ok := o.inserted[it.request]; ok {
				o.edge(before, i)
			}
			o.inserted[it.request] = i
		case it.role == state:
			o.state(i)
		case it.role == update:
			o.update(i)
		case it.lane == 0:
			o.connection(i)
		default:
			o.strong(i, o.lane(it.lane))
			if l := o.lane(it.lane); it.opening && l.opened < 0 {
				l.opened = i
			}
		}
	}
}

// strong links an item that keeps its place among all content of its section. i is the item's index.
func (o *orderer) strong(i int, l *lane) {
	it := &o.items[i]
	o.edge(l.strong, i)
	for _, u := range l.updates {
		o.edge(u, i)
	}
	clear(l.updates)
	if it.boundary && it.lane != 0 {
		o.bound(i, l)
	}
	if it.role == act {
		l.acted, l.since = i, l.since[:0]
	} else if it.moves || it.effect != "" {
		l.since = append(l.since, i)
	}
	l.strong = i
}

// connection links an item that belongs to no session. Such an item keeps its place among the content of all sections.
func (o *orderer) connection(i int) {
	o.lane(0)
	for _, l := range o.lanes {
		o.strong(i, l)
	}
	o.barrier = i
}

func (o *orderer) update(i int) {
	it := &o.items[i]
	l := o.lane(it.lane)
	o.edge(l.strong, i)
	for call, u := range l.updates {
		if call == it.call || !it.open || !o.items[u].open {
			o.edge(u, i)
		}
	}
	if it.moves {
		l.since = append(l.since, i)
	}
	l.updates[it.call] = i
}

// answer links an answer of the editor to the items that must come before the answer. No item needs to come after it,
// because an answer is shown as early as possible.
func (o *orderer) answer(i int) {
	it := &o.items[i]
	l := o.lane(it.lane)
	switch {
	case it.request < 0:
		o.edge(l.strong, i)
	case l.acted > it.request:
		o.edge(l.acted, i)
	}
	o.edge(it.request, i)
	if other, ok := l.answered[it.request]; ok {
		o.edge(other, i)
	}
	l.answered[it.request] = i
	if it.entry.Method != "session/request_permission" {
		return
	}
	for at := len(l.since) - 1; at >= 0 && l.since[at] > it.request; at-- {
		if o.shows(l.since[at], i) {
			o.edge(l.since[at], i)
		}
	}
}

// shows reports whether the item i may depend on a, the answer to a permission request. The place of i then tells
// whether the agent waited for the answer.
func (o *orderer) shows(i, a int) bool {
	it, ans := &o.items[i], &o.items[a]
	if it.effect != "" {
		return o.related(it, ans)
	}
	return it.call == ans.call
}

func (o *orderer) state(i int) {
	it := &o.items[i]
	l := o.lane(it.lane)
	o.edge(l.opened, i)
	if last, ok := l.states[it.kind]; ok {
		o.edge(last, i)
	}
	if gate, ok := l.gates[it.kind]; ok {
		o.edge(gate, i)
	} else if gate, ok := l.gates[""]; ok {
		o.edge(gate, i)
	}
	l.states[it.kind] = i
}

// bound links an answer of the agent so that it separates earlier state updates from later ones.
func (o *orderer) bound(i int, l *lane) {
	switch o.items[i].entry.Method {
	case "session/set_mode", "session/set_config_option":
		for _, kind := range []string{"current_mode_update", "config_option_update"} {
			if last, ok := l.states[kind]; ok {
				o.edge(last, i)
			}
			l.gates[kind] = i
		}
	default:
		for _, last := range l.states {
			o.edge(last, i)
		}
		clear(l.gates)
		l.gates[""] = i
	}
}

// relation returns a function that reports whether an effect may belong to the tool call of a permission answer. It
// may not if another call names the effect's file or command and this call does not.
func (r *reader) relation() func(effect, answer *item) bool {
	return func(effect, answer *item) bool {
		if answer.call == "" {
			return true
		}
		named := false
		name, _ := json.Marshal(effect.effect)
		name = bytes.Trim(name, `"`)
		for key, c := range r.recent {
			if key.session != effect.entry.Session || !c.names(name) {
				continue
			}
			if key.id == answer.call {
				return true
			}
			named = true
		}
		return !named
	}
}

func (c *call) names(text []byte) bool {
	return slices.ContainsFunc(c.raws, func(raw []byte) bool { return bytes.Contains(raw, text) })
}

// canonical sorts the items of one connection into the canonical order.
func canonical(items []item, related func(effect, answer *item) bool) run {
	o := orderer{items: items, lanes: map[int]*lane{}, barrier: -1, related: related, inserted: map[int]int{}}
	o.link()
	ready := &queue{items: items}
	done := run{items: make([]*item, 0, len(items))}
	for i := range items {
		if items[i].role == free || items[i].role == end {
			done.loose = append(done.loose, &items[i])
		} else if items[i].before == 0 {
			heap.Push(ready, i)
		}
	}
	for ready.Len() > 0 {
		i := heap.Pop(ready).(int)
		done.items = append(done.items, &items[i])
		for _, next := range items[i].after {
			if items[next].before--; items[next].before == 0 {
				heap.Push(ready, next)
			}
		}
	}
	return done
}

// queue is a heap of items that may be shown next.
type queue struct {
	items []item
	heap  []int
}

func (q *queue) Len() int      { return len(q.heap) }
func (q *queue) Swap(i, j int) { q.heap[i], q.heap[j] = q.heap[j], q.heap[i] }
func (q *queue) Push(x any)    { q.heap = append(q.heap, x.(int)) }
func (q *queue) Pop() any {
	last := q.heap[len(q.heap)-1]
	q.heap = q.heap[:len(q.heap)-1]
	return last
}

func (q *queue) Less(i, j int) bool { return inOrder(&q.items[q.heap[i]], &q.items[q.heap[j]]) < 0 }

// inOrder compares two items that may be shown in either order.
func inOrder(a, b *item) int {
	return cmp.Or(
		first(b.role == end, a.role == end),
		first(a.below(), b.below()), // just below its request, before any other section
		cmp.Compare(a.lane, b.lane),
		cmp.Compare(a.rank(), b.rank()),
		cmp.Compare(a.order, b.order),
		cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.text, b.text))
}

// first returns -1 if only a is true, 1 if only b is true, and 0 if both are equal.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// rank returns the position of the item's group in its section: 0 for content, 1 for state updates, 2 for free items.
func (it *item) rank() int {
	switch it.role {
	case state:
		return 1
	case free:
		return 2
	}
	return 0
}
