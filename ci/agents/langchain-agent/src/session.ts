// A session: where it works, whom it talks to, and the turn that runs in it.
import { isAbsolute } from "node:path"
import { methods, RequestError, type AgentContext, type ClientCapabilities, type McpServer, type SessionUpdate } from "@agentclientprotocol/sdk"
import type { ToolCall } from "@langchain/core/messages/tool"
import { build, type Agent } from "./agent.js"
import type { FileSaver } from "./checkpoints.js"
import { fault } from "./fault.js"
import type { Mode } from "./middleware/mode.js"
import { connect, type Servers } from "./tools/mcp.js"
import { tools } from "./tools/index.js"

export type Place = { cwd: string; additionalDirectories?: string[] | null; mcpServers?: McpServer[] | null }

/** By the folders they work in: it takes time to make one. */
const agents = new Map<string, Agent>()

export class Session {
	agent!: Agent
	mode: Mode = "interactive"
	running?: AbortController
	/** A cancel that no turn has had yet. */
	early = false
	/** The user is asked about a call. */
	asking = false
	/** The call that a turn has left with its question open. */
	open?: ToolCall
	/** The last turn ended with an error. */
	failed = false
	/** Its servers and its agent are there. */
	ready: Promise<void> = Promise.resolve()
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
		session.ready = session.start(place.mcpServers ?? [], saver)
		session.ready.catch(() => undefined) // who waits for it hears of it
		if (!fault("cancel-lost-while-servers-start")) await session.ready
		return session
	}

	private async start(servers: McpServer[], saver: FileSaver) {
		this.servers = await connect(servers)
		const shared = fault("agent-shared-by-sessions-of-folder")
		const known = shared && agents.get(this.cwd)
		this.agent = known || build(this, [...tools(this), ...this.servers.tools], saver)
		if (shared) agents.set(this.cwd, this.agent)
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
		const late = !this.running || this.running.signal.aborted
		if (late && fault("cancel-without-turn-hits-next-prompt")) this.early = true
		this.running?.abort()
	}

	async close() {
		if (this.calls.size === 0 || !fault("close-lets-running-call-finish")) this.cancel()
		await this.ended
		await this.ready.catch(() => undefined)
		await this.servers?.close()
		if (agents.get(this.cwd) === this.agent) agents.delete(this.cwd)
	}
}
