// A checkpointer that survives the process: LangGraph's own in memory, and a
// file for each thread.
import { randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { MemorySaver } from "@langchain/langgraph"
import { fault } from "./fault.js"

type Put = Parameters<MemorySaver["put"]>
type PutWrites = Parameters<MemorySaver["putWrites"]>

const folder = join(homedir(), ".langchain-agent", "sessions")
const bytes = "base64:" // what a string begins with that stands for bytes

export class FileSaver extends MemorySaver {
	/** Makes a thread without a history. */
	begin(): string {
		const thread = randomUUID()
		this.save(thread)
		return thread
	}

	/** Reports whether a thread has a file. */
	has(thread: string): boolean {
		return isThread(thread) && existsSync(file(thread))
	}

	/** Reads a thread from its file and reports whether there is one. */
	read(thread: string): boolean {
		if (!isThread(thread)) return false // a client's text becomes no path
		try {
			const saved = JSON.parse(readFileSync(file(thread), "utf8"), (_, v) =>
				typeof v === "string" && v.startsWith(bytes) ? new Uint8Array(Buffer.from(v.slice(bytes.length), "base64")) : v)
			if (saved.storage) this.storage[thread] = saved.storage
			Object.assign(this.writes, saved.writes)
			return true
		} catch (e) {
			if ((e as NodeJS.ErrnoException).code === "ENOENT") return false
			throw e
		}
	}

	override async put(...args: Put) {
		const config = await super.put(...args)
		this.forget(args[0].configurable!["thread_id"], args[1].id)
		this.save(args[0].configurable!["thread_id"])
		return config
	}

	override async putWrites(...args: PutWrites) {
		await super.putWrites(...args)
		this.save(args[0].configurable!["thread_id"])
	}

	/** Keeps the newest checkpoint only: nobody goes back to an older one. */
	private forget(thread: string, newest: string) {
		for (const checkpoints of Object.values(this.storage[thread]!)) {
			if (!(newest in checkpoints)) continue
			for (const id of Object.keys(checkpoints)) if (id !== newest) delete checkpoints[id]
		}
		for (const key of Object.keys(this.writes)) {
			const [of, , id] = JSON.parse(key)
			if (of === thread && id !== newest) delete this.writes[key]
		}
	}

	private save(thread: string) {
		const mine = Object.entries(this.writes).filter(([key]) => JSON.parse(key)[0] === thread)
		const text = JSON.stringify({ storage: this.storage[thread], writes: Object.fromEntries(mine) }, (_, v) =>
			v instanceof Uint8Array ? bytes + Buffer.from(v).toString("base64") : v)
		const made = mkdirSync(folder, { recursive: true })
		if (made && fault("session-folder-told-on-stdout")) console.log(`Sessions are kept in ${folder}`)
		const whole = file(thread) + ".new" // a process that is killed leaves the old file or the new one
		writeFileSync(whole, text)
		renameSync(whole, file(thread))
	}
}

const isThread = (id: string) => /^[0-9a-f-]{36}$/.test(id)

const file = (thread: string) => join(folder, thread + ".json")
