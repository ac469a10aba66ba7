package faults

import "path"

func fileFaults() []Fault {
	relative := func(o object, name string) {
		if s, ok := o[name].(string); ok {
			o[name] = path.Base(s)
		}
	}
	return []Fault{
		fault("fs-relative-path", "writes files of the editor by a relative path",
			onRequest("fs/write_text_file", func(p object) { relative(p, "path") })).copies("kirodotdev/Kiro#11230"),
		fault("fs-line-zero", "counts the lines of a file from 0",
			onRequest("fs/read_text_file", func(p object) { p["line"] = 0 })),
		fault("location-relative", "names the places a tool works on by relative paths",
			changeUpdate(func(u object, _ string) {
				for l := range objects(u["locations"], "") {
					relative(l, "path")
				}
			})).copies("zed-industries/zed#62671"),
		fault("location-as-given", "names the places a tool works on as its model did",
			changeUpdate(func(u object, _ string) {
				input, _ := u["rawInput"].(object)
				given, _ := input["path"].(string)
				for l := range objects(u["locations"], "") {
					if given != "" {
						l["path"] = given
					}
				}
			})),
		fault("location-line-zero", "points at line 0 of a file", changeUpdate(func(u object, _ string) {
			for l := range objects(u["locations"], "") {
				l["line"] = 0
			}
		})),
		fault("diff-relative", "shows a change under a relative path", changeUpdate(func(u object, tag string) {
			for o := range objects(u["content"], "diff") {
				relative(o, "path")
			}
		})),
		fault("reads-the-disk", "reads files from the disk though the editor has unsaved changes",
			withClient(func(c *client) { c.ReadTextFile = false })).copies("google-gemini/gemini-cli#29108"),
	}
}
