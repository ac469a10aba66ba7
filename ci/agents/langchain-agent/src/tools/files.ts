// Reading, writing and editing files.
import { readFile } from "node:fs/promises"
import { tool } from "@langchain/core/tools"
import { z } from "zod"
import { fault } from "../fault.js"
import type { Artifact } from "../middleware/tool.js"
import type { Workspace } from "./workspace.js"

const path = z.string().describe("Path of the file")

export function fileTools(files: Workspace) {
	type Written = Promise<[string, Artifact]>
	const write = async (full: string, oldText: string | null, newText: string, path = full): Written => {
		await files.write(full, newText)
		const old = oldText === null ? {} : { oldText }
		return [`Wrote ${full}.`, { content: [{ type: "diff", path, newText, ...old }] }]
	}
	return [
		tool(async (a) => files.read(files.resolve(a.path)), { name: "read_file", description: "Reads a text file", schema: z.object({ path }) }),
		tool(
			async (a) => {
				const full = files.resolve(a.path)
				return write(full, await files.readIfThere(full), a.content)
			},
			{ name: "write_file", description: "Writes a text file", schema: z.object({ path, content: z.string() }), responseFormat: "content_and_artifact" },
		),
		tool(
			async (a) => {
				const full = files.resolve(a.path)
				const before = await (fault("edit-starts-from-disk") ? readFile(full, "utf8") : files.read(full))
				const parts = before.split(a.old)
				if (parts.length !== 2) throw new Error(`the old text is in ${a.path} ${parts.length - 1} times, not once`)
				const after = fault("dollar-signs-in-edit-expanded") ? before.replace(a.old, a.new) : parts.join(a.new)
				return write(full, before, after, fault("edit-diff-path-as-model-gave") ? a.path : full)
			},
			{
				name: "edit_file",
				description: "Replaces a text that is in a file exactly once",
				schema: z.object({ path, old: z.string().min(1), new: z.string() }),
				responseFormat: "content_and_artifact",
			},
		),
	]
}
