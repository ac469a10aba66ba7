// MCP servers that the editor names, as tools mcp__SERVER__TOOL.
import type { McpServer } from "@agentclientprotocol/sdk"
import type { StructuredToolInterface } from "@langchain/core/tools"
import { MultiServerMCPClient, type Connection } from "@langchain/mcp-adapters"
import { fault } from "../fault.js"

export type Servers = { tools: StructuredToolInterface[]; close(): Promise<void> }

/** By the names of the servers. */
const shared = new Map<string, Servers>()

/** The processes of the servers of all sessions. */
const processes = new Set<number>()

/** Ends the servers that are left. A server need not end with its input. */
export function killServers() {
	for (const pid of processes) {
		try {
			process.kill(pid, "SIGKILL")
		} catch {
			// it has ended
		}
	}
}

/** Connects what can be connected: one broken server must not cost the session. */
export async function connect(servers: McpServer[]): Promise<Servers> {
	if (servers.length === 0) return { tools: [], close: async () => undefined }
	const names = servers.map((s) => s.name).join()
	const known = fault("mcp-servers-shared-by-name") && shared.get(names)
	if (known) return known
	const client = new MultiServerMCPClient({
		mcpServers: Object.fromEntries(servers.map((s) => [label(s), connection(s)])),
		prefixToolNameWithServerName: true,
		additionalToolNamePrefix: "mcp",
		throwOnLoadError: false,
		onConnectionError: "ignore",
	})
	const tools = await client.getTools()
	if (fault("long-mcp-tool-names-collide")) {
		for (const t of tools) t.name = t.name.slice(0, 64) // providers take no longer ones
	}
	const pids: number[] = []
	for (const s of servers.filter((s) => !("type" in s))) {
		const transport = (await client.getClient(label(s)).catch(() => undefined))?.transport as { pid?: number } | undefined
		if (transport?.pid) pids.push(transport.pid)
	}
	for (const pid of pids) processes.add(pid)
	const close = async () => {
		await client.close()
		for (const pid of pids) processes.delete(pid)
	}
	if (!fault("mcp-servers-shared-by-name")) return { tools, close }
	shared.set(names, { tools, close: async () => undefined }) // others may use them
	return shared.get(names)!
}

/** The name of a server in the names of its tools, in which models allow no other characters. */
const label = (server: McpServer) => server.name.replace(/[^a-zA-Z0-9_-]/g, "_")

function connection(server: McpServer): Connection {
	const pairs = (list: { name: string; value: string }[]) => Object.fromEntries(list.map((p) => [p.name, p.value]))
	if (!("type" in server)) return { transport: "stdio", command: server.command, args: server.args, ...(fault("mcp-env-dropped") ? {} : { env: pairs(server.env) }) }
	if (server.type !== "http") throw new Error(`MCP servers over ${server.type} are not supported`)
	return { transport: "http", url: server.url, headers: pairs(server.headers), automaticSSEFallback: false }
}
