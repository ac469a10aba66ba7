// What an editor may ask of the agent, and who answers it.
import { createRequire } from "node:module"
import { agent, methods, RequestError, PROTOCOL_VERSION, type AgentContext, type ClientCapabilities } from "@agentclientprotocol/sdk"
import { FileSaver } from "./checkpoints.js"
import { fault } from "./fault.js"
import { modeState, setMode } from "./middleware/mode.js"
import { replay } from "./replay.js"
import { Session, type Place } from "./session.js"
import { prompt } from "./turn.js"

const { version } = createRequire(import.meta.url)("langchain/package.json") as { version: string }

export function app() {
	const sessions = new Map<string, Session>()
	const saver = new FileSaver()
	let capabilities: ClientCapabilities = {}

	const named = (id: string): Session => {
		const session = sessions.get(id)
		if (!session) throw RequestError.sessionNotFound(id)
		return session
	}
	const close = async (id: string) => {
		const session = sessions.get(id)
		sessions.delete(id)
		await session?.close()
	}
	const open = async (id: string, place: Place, client: AgentContext) => {
		const before = sessions.get(id)
		if (!fault("load-detaches-running-turn")) await close(id)
		const session = await Session.open(id, place, client, capabilities, saver)
		session.mode = before?.mode ?? session.mode // it holds while the process lives
		sessions.set(id, session)
		return session
	}
	const again = async (params: Place & { sessionId: string }, client: AgentContext, silent = false) => {
		const unread = silent && fault("resume-in-new-process-knows-nothing") // nothing of it is told
		const known = unread ? saver.has(params.sessionId) : saver.read(params.sessionId)
		if (!known) throw RequestError.sessionNotFound(params.sessionId)
		return open(params.sessionId, params, client)
	}

	return agent({ name: "langchain-agent" })
		.onRequest(methods.agent.initialize, ({ params }) => {
			capabilities = params.clientCapabilities ?? {}
			return {
				protocolVersion: PROTOCOL_VERSION,
				agentInfo: { name: "langchain-agent", title: "LangChain agent", version },
				agentCapabilities: {
					loadSession: true,
					mcpCapabilities: { http: true },
					promptCapabilities: { image: true, embeddedContext: true },
					sessionCapabilities: { close: {}, resume: {} },
				},
			}
		})
		.onRequest(methods.agent.session.new, async ({ params, client }) => {
			const session = await open(saver.begin(), params, client)
			return { sessionId: session.id, modes: modeState(session) }
		})
		.onRequest(methods.agent.session.load, async ({ params, client }) => {
			const session = await again(params, client)
			await replay(session)
			return { modes: modeState(session) }
		})
		.onRequest(methods.agent.session.resume, async ({ params, client }) => {
			const live = fault("resume-of-open-session-keeps-old-place") && sessions.get(params.sessionId)
			const session = live || (await again(params, client, true))
			if (fault("resume-replays-history")) await replay(session)
			return { modes: modeState(session) }
		})
		.onRequest(methods.agent.session.close, async ({ params }) => {
			named(params.sessionId)
			await close(params.sessionId)
			return {}
		})
		.onRequest(methods.agent.session.setMode, ({ params }) => {
			setMode(named(params.sessionId), params.modeId)
			return {}
		})
		.onRequest(methods.agent.session.prompt, ({ params, signal }) => prompt(named(params.sessionId), params.prompt, signal))
		.onNotification(methods.agent.session.cancel, ({ params }) => sessions.get(params.sessionId)?.cancel())
}
