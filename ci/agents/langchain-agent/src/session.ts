// A session: where it works, whom it talks to, and the turn that runs in it.
import { isAbsolute } from "node:path"
import { methods, RequestError, type AgentContext, type ClientCapabilities, type McpServer, type SessionUpdate } from "@agentclientprotocol/sdk"
import { build, type Agent } from "./agent.js"
import type { FileSaver } from "./checkpoints.js"
import type { Mode } from "./middleware/mode.js"
import { connect, type Servers } from "./tools/mcp.js"
import { tools } from "./tools/index.js"

export type Place = { cwd: string; additionalDirectories?: string[] | null; mcpServers?: McpServer[] | null }

export class Session {
	agent!: Agent
	mode: Mode = "interactive"
	running?: AbortController
	/** The end of the turn that runs, good or bad. */
	ended: Promise<unknown> = Promise.resolve()
	/** Calls that were shown and have not ended. */
	readonly calls = new Set<string>()
	private servers?: Servers

	private constructor(
		readonly id: string,
		readonly cwd: string,
		/** All folders the session may work in, cwd first. */
		readonly roots: string[],
		readonly client: AgentContext,
		readonly capabilities: ClientCapabilities,
	) {}

	static async open(id: string, place: Place, client: AgentContext, capabilities: ClientCapabilities, saver: FileSaver) {
		const roots = [place.cwd, ...(place.additionalDirectories ?? [])]
		for (const root of roots) {
			if (!isAbsolute(root)) throw RequestError.invalidParams({ path: root }, "the path is not absolute")
		}
		const session = new Session(id, place.cwd, roots, client, capabilities)
		session.servers = await connect(place.mcpServers ?? [])
		session.agent = build(session, [...tools(session), ...session.servers.tools], saver)
		return session
	}

	/** The thread of the checkpointer is the session. */
	get config() {
		return { configurable: { thread_id: this.id } }
	}

	/** Frames leave in the order of the calls. */
	update(update: SessionUpdate): Promise<void> {
		return this.client.notify(methods.client.session.update, { sessionId: this.id, update })
	}

	cancel() {
		this.running?.abort()
	}

	async close() {
		this.cancel()
		await this.ended
		await this.servers?.close()
	}
}
