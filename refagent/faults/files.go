package faults

import "path"

func fileFaults() []Fault {
	relative := func(o object, name string) {
		if s, ok := o[name].(string); ok {
			o[name] = path.Base(s)
		}
	}
	return []Fault{
		{
			Name:    "fs-relative-path",
			Summary: "writes files of the editor by a relative path",
			Copies:  "kirodotdev/Kiro#11230",
			Hooks:   onRequest("fs/write_text_file", func(p object) { relative(p, "path") }),
		},
		{
			Name:    "fs-line-zero",
			Summary: "counts the lines of a file from 0",
			Hooks:   onRequest("fs/read_text_file", func(p object) { p["line"] = 0 }),
		},
		{
			Name:    "location-relative",
			Summary: "names the places a tool works on by relative paths",
			Copies:  "zed-industries/zed#62671",
			Hooks: onUpdate(func(u object, _ string) bool {
				list, _ := u["locations"].([]any)
				for _, l := range list {
					relative(l.(object), "path")
				}
				return true
			}),
		},
		{
			Name:    "location-line-zero",
			Summary: "points at line 0 of a file",
			Hooks: onUpdate(func(u object, _ string) bool {
				list, _ := u["locations"].([]any)
				for _, l := range list {
					l.(object)["line"] = 0
				}
				return true
			}),
		},
		{
			Name:    "diff-relative",
			Summary: "shows a change under a relative path",
			Hooks: onUpdate(func(u object, tag string) bool {
				list, _ := u["content"].([]any)
				for _, c := range list {
					if o, ok := c.(object); ok && o["type"] == "diff" {
						relative(o, "path")
					}
				}
				return true
			}),
		},
		{
			Name:    "reads-the-disk",
			Summary: "reads files from the disk though the editor has unsaved changes",
			Copies:  "google-gemini/gemini-cli#29108",
			Hooks:   withClient(func(c *client) { c.ReadTextFile = false }),
		},
	}
}
