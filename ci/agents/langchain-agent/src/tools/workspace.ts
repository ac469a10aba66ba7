// Files of the session: through the editor where it offers that, since it knows
// what is not saved yet, else on the disk. Never outside the session's folders.
import { existsSync, realpathSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { dirname, relative, resolve } from "node:path"
import { methods } from "@agentclientprotocol/sdk"
import { fault } from "../fault.js"
import type { Session } from "../session.js"

const page = 1000 // lines

export class Workspace {
	constructor(private readonly session: Session) {}

	resolve(path: string): string {
		const full = resolve(this.session.cwd, path)
		const real = followed(full)
		if (!this.session.roots.some((root) => within(root, full) && within(followed(root), real))) throw new Error(`${path} is outside the folders of this session`)
		return full
	}

	async read(path: string): Promise<string> {
		if (!this.session.capabilities.fs?.readTextFile) return readFile(path, "utf8")
		if (fault("long-file-read-in-pages-loses-line")) return this.pages(path)
		return (await this.session.client.request(methods.client.fs.readTextFile, { sessionId: this.session.id, path })).content
	}

	/** Reads a file in pages, so that no message of the editor gets too long. */
	private async pages(path: string): Promise<string> {
		const params = { sessionId: this.session.id, path, limit: page }
		let text = ""
		for (let line = 1; ; line += page + 1) {
			const { content } = await this.session.client.request(methods.client.fs.readTextFile, { ...params, line })
			text += (text && content && !text.endsWith("\n") ? "\n" : "") + content
			const lines = content.split("\n").length
			if (lines < page || lines > page + 1) return text // the last page, or an editor without pages
		}
	}

	/** The content of a file, null if there is none. */
	async readIfThere(path: string): Promise<string | null> {
		try {
			return await this.read(path)
		} catch (e) {
			if (existsSync(path)) throw e
			return null
		}
	}

	async write(path: string, content: string) {
		const fs = this.session.capabilities.fs
		if (fault("writes-through-editor-that-only-reads") ? fs?.readTextFile : fs?.writeTextFile) {
			const params = { sessionId: this.session.id, path, content }
			const written = this.session.client.request(methods.client.fs.writeTextFile, params)
			if (!fault("refused-write-goes-to-disk")) {
				await written
				return
			}
			if (await written.then(() => true, () => false)) return // an editor may not be able to
		}
		await mkdir(dirname(path), { recursive: true })
		await writeFile(path, content)
	}
}

/** Where a path leads, also one that is not there yet. */
function followed(path: string): string {
	try {
		return realpathSync(path)
	} catch {
		const up = dirname(path)
		return up === path ? path : resolve(followed(up), relative(up, path))
	}
}

function within(folder: string, path: string): boolean {
	const rest = relative(folder, path)
	return rest === "" || (rest !== ".." && !rest.startsWith("../") && !rest.startsWith("/"))
}
