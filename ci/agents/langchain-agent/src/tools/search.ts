// Searching the files of the session.
import { readdir, readFile } from "node:fs/promises"
import { join, relative } from "node:path"
import { tool } from "@langchain/core/tools"
import { z } from "zod"
import { fault } from "../fault.js"
import type { Session } from "../session.js"

const most = 100 // matches, so that a careless pattern does not fill the context

export function searchTool(session: Session) {
	return tool(
		async ({ pattern }) => {
			const wanted = new RegExp(pattern)
			const found: string[] = []
			const root = fault("search-looks-in-process-folder") ? process.cwd() : session.cwd
			for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
				const file = join(entry.parentPath, entry.name)
				if (!entry.isFile() || /(^|\/)(\.git|node_modules)\//.test(relative(root, file))) continue
				const lines = (await readFile(file, "utf8")).split("\n")
				lines.forEach((line, i) => wanted.test(line) && found.push(`${relative(root, file)}:${i + 1}: ${line}`))
				if (found.length >= most) break
			}
			return found.slice(0, most).join("\n") || "no match"
		},
		{ name: "search", description: "Finds lines of files by a regular expression", schema: z.object({ pattern: z.string() }) },
	)
}
