package liberties

import "slices"

// fileLiberties are about the tools and how they reach files and commands.
func fileLiberties() []Liberty {
	return slices.Concat(
		of("reading",
			liberty("reads-disk", "reads files from the disk", "FS-010", func(h *habits) { h.ReadsDisk = true }).
				takes("fs/read_text_file"),
			liberty("reads-whole", "reads whole files always", "FS-004", func(h *habits) { h.Whole = true }),
			liberty("reads-little", "reads no file of more than 64 KiB", "TOOL-012",
				func(h *habits) { h.ReadLimit = 64 << 10 }).takes("too large"),
			liberty("reads-little-and-says-so", "completes the read of a larger file by saying that it is too large", "TOOL-012",
				func(h *habits) { h.ReadLimit, h.LimitIsResult = 64<<10, true }),
			liberty("reads-pages", "reads files in pages, the first of two lines", "FS-004", func(h *habits) { h.Page = 2 }),
		),
		of("looking up",
			liberty("looks-up-at-new", "reads files of instructions when a session begins", "FS-010",
				func(h *habits) { h.AtNew = []string{"AGENTS.md", "~/.config/agent/settings.json"} }),
			liberty("looks-up-in-turn", "reads files of instructions at the begin of each turn", "FS-010",
				func(h *habits) { h.AtPrompt = []string{"AGENTS.md", "README.md"} }),
			liberty("looks-up-home", "reads its settings in HOME at the begin of each turn", "FS-010",
				func(h *habits) { h.AtPrompt = []string{"~/.agent/memory.md"} }),
		),
		of("tools",
			liberty("tools-only-shell", "has no tool but a shell", "TOOL-001", func(h *habits) {
				h.Tools = []string{"run_shell"}
			}).takes("tool").learned(),
			liberty("tools-renamed", "calls its tools and their arguments otherwise", "TOOL-001", func(h *habits) {
				h.Names = map[string]string{"read_file": "view_file", "write_file": "create_file", "edit_file": "str_replace",
					"run_shell": "bash", "search": "grep", "ask_user": "ask_user_question"}
				h.Arguments = map[string]string{"path": "file_path", "content": "file_text", "old": "old_string",
					"new": "new_string", "command": "cmd", "pattern": "query"}
			}).learned(),
			liberty("tools-patch", "changes files by patches", "TOOL-001", func(h *habits) { h.PatchTool = true }).
				takes("tool").learned(),
			liberty("tools-few", "has tools to read, to write and to run commands", "TOOL-001", func(h *habits) {
				h.Tools = []string{"run_shell", "write_file", "read_file"}
			}).takes("tool").learned(),
		),
		of("terminals",
			liberty("own-shell", "runs commands itself, not in a terminal of the editor", "FS-010",
				func(h *habits) { h.OwnShell = true }).takes("terminal/create"),
			liberty("terminal-polled", "asks for a terminal's output until the command has ended", "TERM-004",
				func(h *habits) { h.Polls = true }),
			liberty("terminal-killed", "ends a terminal before it is released", "TERM-005",
				func(h *habits) { h.Kills = true }),
			liberty("terminal-direct", "gives plain commands to the terminal without a shell", "TERM-002",
				func(h *habits) { h.Direct = true }),
			liberty("terminal-released-later", "releases a terminal without waiting for that", "TERM-007",
				func(h *habits) { h.Later = true }),
		),
		of("writing",
			liberty("writes-disk", "writes files on the disk", "FS-010", func(h *habits) { h.WritesDisk = true }).
				takes("fs/write_text_file"),
			liberty("reads-before-writing", "reads a file before it writes it", "FS-010",
				func(h *habits) { h.ReadsBefore = true }),
			liberty("keeps-files", "overwrites no file with its write tool", "TOOL-012",
				func(h *habits) { h.KeepsFiles = true }).takes("already exists"),
		),
		of("",
			liberty("keeps-folders", "makes no folder for a file", "TOOL-012",
				func(h *habits) { h.KeepsFolders = true }).takes("does not exist"),
			liberty("names-files", "tells its model the path of an embedded file that is on the disk", "PROMPT-010",
				func(h *habits) { h.NamesFiles = true }),
			liberty("final-newline", "ends each file that it writes with a newline", "FS-005",
				func(h *habits) { h.FinalNewline = true }),
		),
	)
}
