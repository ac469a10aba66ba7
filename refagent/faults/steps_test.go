package faults_test

import (
	"os"
	"path/filepath"
	"strings"
)

// chapters are the batteries. A fault has to change what is seen of at least
// one of them.
var chapters = map[string]func(b *battery){
	"transport": func(b *battery) {
		b.call("vendor/unknown", object{})
		b.call("session/new", object{"cwd": "relative"})
		b.call("session/new", object{"cwd": "/", "mcpServers": []any{}, "additionalDirectories": []any{"relative"}})
		b.notify("vendor/unknown", object{})
		b.raw(`{"jsonrpc":"2.0","id":77,"result":{}}` + "\n")
		b.raw("{nonsense\n")
		b.settle()
		b.call("session/list", object{"_meta": object{"x": strings.Repeat("x", 70<<10)}})
		b.call("initialize", object{"protocolVersion": 7})
		b.call("authenticate", object{"methodId": "login"})
	},
	"text": func(b *battery) {
		s := b.newSession()
		b.turn(s, "say one")
		b.call("session/prompt", prompt(s, "say two"))
		b.call("session/prompt", prompt(s, "say three"))
		b.turn(s, "stop length")
		b.turn(s, "stop content_filter")
		b.turn(s, "fail now")
		b.turn(s, "break off")
		b.turn(s, object{"type": "image", "mimeType": "image/png", "data": ""})
		b.turn(s, "say", object{"type": "resource_link", "name": "n", "uri": "file:///x"})
		b.turn(s, object{"type": "resource_link", "name": "n", "uri": "file:///x"})
		b.turn(s, "use think {\"thought\":\"again\"}")
		b.turn("sess_00000000000000000000000000000000", "say x")
	},
	"tools": func(b *battery) {
		s := b.newSession()
		b.turn(s, `use read_file {"path":"x.txt"}`)
		b.turn(s, `use write_file {"path":"x.txt","content":"hello"}`)
		b.turn(s, `use edit_file {"path":"x.txt","old":"unsaved","new":"saved"}`)
		b.turn(s, `use run_shell {"command":"ls"}`)
		b.turn(s, `use fly {}`)
	},
	"subagent": func(b *battery) {
		s := b.newSession()
		b.turn(s, `use delegate {"task":"say hello"}`)
		b.turn(s, `use delegate {"task":"fail now"}`)
		b.turn(s, `use delegate {"task":"say more","child":"say hello"}`)
		b.turn(s, `use delegate {"task":"use delegate {\"task\":\"say deep\"}"}`)
		b.call("session/list", object{})
		b.choice = "hold"
		id := b.request("session/prompt",
			prompt(s, `use delegate {"task":"use write_file {\"path\":\"x\",\"content\":\"x\"}"}`))
		var child string
		b.during(id, "permission", func(m object) bool {
			params, _ := m["params"].(object)
			child, _ = params["sessionId"].(string)
			return m["method"] == "session/request_permission"
		})
		b.call("session/prompt", prompt(child, "say no"))
		b.call("session/close", object{"sessionId": child})
		b.notify("session/cancel", object{"sessionId": child})
		b.response(id)
		b.notify("session/cancel", object{"sessionId": child})
		b.settle()
		b.turn(s, "say more")
		b.call("session/load", object{"sessionId": s, "cwd": b.dir, "mcpServers": []any{}})
		b.call("session/close", object{"sessionId": s})
		b.call("session/prompt", prompt(s, "say late"))
		b.settle()
	},
	"system": func(b *battery) {
		set := func(method, session, mode, kind, text string) string {
			r := b.call(method, object{"sessionId": session, "cwd": b.dir, "mcpServers": []any{},
				"systemPrompt": object{
					"mode": mode, "content": []any{object{"type": kind, "text": text}}}})
			id, _ := r["sessionId"].(string)
			b.settle()
			return id
		}
		one := set("session/new", "", "append", "text", "Rhyme one.")
		b.turn(one, "say one")
		b.turn(one, "say two")
		two := set("session/new", "", "override", "text", "Rhyme two.")
		b.turn(two, `use write_file {"path":"x.txt","content":"x"}`)
		set("session/load", one, "append", "text", "Rhyme three.")
		b.turn(one, "say three")
		set("session/new", "", "_rhyme", "text", "Rhyme.")
		set("session/new", "", "append", "image", "")
	},
	"permission": func(b *battery) {
		s := b.newSession()
		b.choice = "allow-once"
		b.turn(s, `use write_file {"path":"refused.txt","content":"x"}`)
		for _, choice := range []string{"allow-once", "reject-once", "no-such", "error", "cancelled", "allow-once",
			"reject-always", "allow-once"} {
			b.choice = choice
			b.turn(s, `use write_file {"path":"`+choice+`.txt","content":"x"}`)
		}
		b.choice = "allow-always"
		b.turn(s, `use delete_file {"path":"none"}`)
		b.turn(s, `use delete_file {"path":"none"}`)
		other := b.newSession()
		b.choice = "reject-once"
		b.turn(other, `use delete_file {"path":"none"}`)
	},
	"cancel": func(b *battery) {
		s := b.newSession()
		b.notify("session/cancel", object{"sessionId": s})
		b.turn(s, "say after an idle cancel")
		id := b.request("session/prompt", prompt(s, "hold one"))
		b.during(id, "first text", saysFirst)
		b.notify("session/cancel", object{"sessionId": s})
		b.notify("session/cancel", object{"sessionId": s})
		b.response(id)
		b.wait("the abort", b.model.aborted)
		b.settle()
		b.turn(s, `use write_file {"path":"x.txt","content":"hello"}`)
		b.choice = "hold"
		id = b.request("session/prompt", prompt(s, `use write_file {"path":"x.txt","content":"hello"}`))
		b.during(id, "permission", asksPermission)
		b.notify("session/cancel", object{"sessionId": s})
		for _, held := range b.held {
			b.send(object{"jsonrpc": "2.0", "id": held, "result": object{"outcome": object{"outcome": "cancelled"}}})
		}
		b.response(id)
		b.turn(s, "say again")
		id = b.request("session/prompt", prompt(s, `use write_file {"path":"x.txt","content":"hello"}`))
		b.during(id, "permission", asksPermission)
		b.notify("session/cancel", object{"sessionId": s})
		b.response(id)
		b.settle()
	},
	"cancel-early": func(b *battery) {
		s := b.newSession()
		id := b.request("session/prompt", prompt(s, "mute"))
		b.notify("session/cancel", object{"sessionId": s})
		b.response(id)
	},
	"cancel-request": func(b *battery) {
		s := b.newSession()
		id := b.request("session/prompt", prompt(s, "hold"))
		b.during(id, "first text", saysFirst)
		b.notify("$/cancel_request", object{"requestId": id})
		b.response(id)
	},
	"two": func(b *battery) {
		x, y := b.newSession(), b.newSession()
		b.turn(y, "say something to y")
		id := b.request("session/prompt", prompt(x, "hold"))
		b.during(id, "first text", saysFirst)
		b.turn(y, "say something else to y")
		b.call("session/prompt", prompt(x, "say busy"))
		b.call("session/new", object{"cwd": b.dir, "mcpServers": []any{}})
		second := b.request("session/prompt", prompt(y, "hold on"))
		b.during(second, "first text", saysFirst)
		b.notify("session/cancel", object{"sessionId": y})
		b.response(second)
		b.wait("the abort", b.model.aborted) // else it could be released instead of the other
		b.model.release <- struct{}{}
		b.response(id)
		b.choice = "reject-once"
		b.turn(x, `use write_file {"path":"x","content":""}`)
	},
	"slow": func(b *battery) {
		s := b.newSession()
		goOn := b.pauseAfter("flood")
		defer goOn()
		id := b.request("session/prompt", prompt(s, "flood"))
		b.wait("the second request", b.model.reached)
		goOn()
		b.response(id)
	},
	"close": func(b *battery) {
		s := b.newSession()
		b.call("session/list", object{"cwd": b.dir})
		b.call("session/list", object{"cursor": "again"})
		id := b.request("session/prompt", prompt(s, "hold"))
		b.during(id, "first text", saysFirst)
		closing := b.request("session/close", object{"sessionId": s})
		b.response(id)
		b.response(closing)
		b.settle()
		b.call("session/delete", object{"sessionId": s})
		b.call("session/list", object{})
	},
	"folders": func(b *battery) {
		s := b.newSession()
		other := filepath.Join(b.dir, "other")
		if err := os.MkdirAll(other, 0o755); err != nil {
			b.over("no folder", err.Error())
		}
		b.call("session/new", object{"cwd": other, "mcpServers": []any{}})
		b.settle()
		b.turn(s, `use write_file {"path":"x.txt","content":"hello"}`)
	},
	"modes": func(b *battery) {
		s := b.newSession()
		b.call("session/set_mode", object{"sessionId": s, "modeId": "planning"})
		b.turn(s, `use write_file {"path":"a","content":""}`)
		b.turn(s, `use write_file {"path":"b","content":""}`)
		b.turn(s, `use write_file {"path":"d","content":""}`)
		b.call("session/set_config_option", object{"sessionId": s, "configId": "mode", "value": "readonly"})
		b.turn(s, `use write_file {"path":"c","content":""}`)
	},
	"load": func(b *battery) {
		s := b.newSession()
		b.turn(s, "say one", object{"type": "image", "mimeType": "image/png", "data": "aGVsbG8="})
		b.turn(s, `use write_file {"path":"x.txt","content":"hello"}`)
		b.end()
		b.start()
		load := object{"sessionId": s, "cwd": b.dir, "mcpServers": []any{}}
		b.call("session/load", load)
		b.settle()
		b.call("session/load", load)
		b.turn(s, "say two")
		b.call("session/resume", object{"sessionId": s, "cwd": b.dir})
		b.settle()
		b.call("session/load", object{"sessionId": "sess_00000000000000000000000000000000", "cwd": b.dir,
			"mcpServers": []any{}})
	},
	"kill": func(b *battery) {
		s := b.newSession()
		id := b.request("session/prompt", prompt(s, "hold"))
		b.during(id, "first text", saysFirst)
		killed := b.state + "-killed"
		if err := os.CopyFS(killed, os.DirFS(b.state)); err != nil {
			panic(err)
		}
		b.in.Close()
		b.stop()
		b.wait("the abort", b.model.aborted)
		b.state = killed
		b.start()
		b.call("session/load", object{"sessionId": s, "cwd": b.dir, "mcpServers": []any{}})
		b.turn(s, "say two")
	},
	"bare": func(b *battery) {
		s := b.newSession()
		b.turn(s, `use write_file {"path":"x.txt","content":"hello"}`)
		b.turn(s, `use read_file {"path":"x.txt"}`)
		b.turn(s, `use run_shell {"command":"echo hello"}`)
		b.turn(s, `use delegate {"task":"say hello"}`)
		broken := b.broken()
		b.turn(broken, "say one")
		b.turn(broken, "/compact")
	},
	"news": func(b *battery) {
		b.end()
		b.news = true
		b.start()
		b.call("providers/set", object{"providerId": "none"})
		s := b.broken()
		b.turn(s, "say one")
		b.turn(s, "/compact")
		b.turn(s, "fail now")
		b.call("session/load", object{"sessionId": s, "cwd": b.dir, "mcpServers": []any{}})
		b.settle()
	},
	"ask": func(b *battery) {
		ask := `use ask_user {"question":"Which?"}`
		b.turn(b.newSession(), ask)
		b.end()
		b.able = true
		b.start()
		s := b.newSession()
		for _, choice := range []string{"accept", "decline", "_later", "wrong type", "error"} {
			b.choice = choice
			b.turn(s, ask)
		}
		b.choice = "decline"
		b.turn(s, `use ask_user {"question":"Look","url":"https://example.com/"}`)
	},
	"login": func(b *battery) {
		b.end()
		b.login = true
		b.start()
		setup := object{"cwd": b.dir, "mcpServers": []any{}}
		b.call("session/new", setup)
		b.call("authenticate", object{"methodId": "none"})
		b.call("session/new", setup)
		b.call("authenticate", object{"methodId": "agent"})
		b.turn(b.newSession(), "say hello")
		b.call("logout", object{})
		b.call("session/new", setup)
	},
	"reader": func(b *battery) {
		b.end()
		b.reads = true
		b.start()
		b.turn(b.newSession(), `use write_file {"path":"x.txt","content":"hello"}`)
	},
	"corners": func(b *battery) {
		dirs := func(name string) string {
			dir := filepath.Join(b.dir, name)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				panic(err)
			}
			return dir
		}
		main, extra := dirs("main"), dirs("extra")
		s, _ := b.call("session/new", object{"cwd": main, "mcpServers": []any{},
			"additionalDirectories": []any{extra}})["sessionId"].(string)
		b.turn(s, "/status")
		b.turn(s, "say", object{"type": "image", "mimeType": "image/png", "data": "aGVsbG8="})
		b.turn(s, `use read_file {"path":"a name.txt"}`)
		b.turn(s, `use edit_file {"path":"x.txt","old":"not there","new":"new"}`)
		b.call("session/list", object{"_meta": object{"x": 1}})
		b.call("session/list", object{})
		b.call("session/resume", object{"sessionId": s, "cwd": main})
		b.settle()
		b.turn(s, `use read_file {"path":"`+extra+`/x.txt"}`)
	},
	"reading": func(b *battery) {
		s := b.newSession()
		id := b.request("session/prompt",
			prompt(s, "mute", object{"type": "resource_link", "name": "n", "uri": "file:///x"}))
		b.notify("session/cancel", object{"sessionId": s})
		b.response(id)
	},
	"reported": func(b *battery) {
		b.choice = "reject-once"
		list := []any{object{"name": "broken", "command": "/no/such/program", "args": []any{}, "env": []any{}}}
		b.call("session/new", object{"cwd": b.dir, "mcpServers": list})
		s := b.newSession()
		b.turn(s, `use fly {}`)
		b.turn(s, `use fly {}`)
		b.turn(s, "say", object{"type": "hologram"})
		b.turn(s, "twice")
		id := b.request("session/prompt", prompt(s, "hold"))
		b.during(id, "first text", saysFirst)
		load := b.request("session/load", object{"sessionId": s, "cwd": b.dir, "mcpServers": []any{}})
		b.response(load)
		removal := b.request("session/delete", object{"sessionId": s})
		b.response(id)
		b.response(removal)
		b.settle()
		b.call("session/list", object{})
	},
	"mcp": func(b *battery) {
		marker := filepath.Join(b.dir, "started")
		server := func(name string) object {
			return object{"name": name, "command": "/bin/sh",
				"args": []any{"-c", `echo "started $GIVEN" >> ` + marker + name},
				"env":  []any{object{"name": "GIVEN", "value": "as told"}}}
		}
		s, _ := b.call("session/new", object{"cwd": b.dir,
			"mcpServers": []any{server("m"), server("n")}})["sessionId"].(string)
		b.turn(s, "say hello")
		b.turn(b.newSession(), "say hello")
	},
}

func text(m object) string {
	params, _ := m["params"].(object)
	update, _ := params["update"].(object)
	content, _ := update["content"].(object)
	s, _ := content["text"].(string)
	return s
}

func saysFirst(m object) bool { return strings.Contains(text(m), "First.") }

func asksPermission(m object) bool { return m["method"] == "session/request_permission" }
