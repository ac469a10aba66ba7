// Files of the session: through the editor where it offers that, since it knows
// what is not saved yet, else on the disk. Never outside the session's folders.
import { existsSync, realpathSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { dirname, relative, resolve } from "node:path"
import { methods } from "@agentclientprotocol/sdk"
import { fault } from "../fault.js"
import type { Session } from "../session.js"

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
		return (await this.session.client.request(methods.client.fs.readTextFile, { sessionId: this.session.id, path })).content
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
			await this.session.client.request(methods.client.fs.writeTextFile, { sessionId: this.session.id, path, content })
			return
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
