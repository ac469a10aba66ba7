// A turn: the agent runs until it has nothing more to do, and asks the user
// wherever it is interrupted.
import type { ContentBlock, PromptResponse, StopReason } from "@agentclientprotocol/sdk"
import { RequestError } from "@agentclientprotocol/sdk"
import type { ToolCall } from "@langchain/core/messages/tool"
import { Command } from "@langchain/langgraph"
import { fault } from "./fault.js"
import { fromPrompt } from "./mappers/content.js"
import { toRequestError } from "./mappers/error.js"
import { stopOfError } from "./mappers/stop.js"
import { answer } from "./middleware/permission.js"
import { endAll } from "./middleware/tool.js"
import type { Session } from "./session.js"
import { Tokens } from "./stream.js"

export async function prompt(session: Session, blocks: ContentBlock[], request: AbortSignal): Promise<PromptResponse> {
	let cancel: AbortController | undefined
	try {
		if (session.running) throw RequestError.invalidRequest({ sessionId: session.id }, "a turn of this session is running")
		if (fault("cancel-lost-while-servers-start")) await session.ready
		const stop = (cancel = session.running = new AbortController())
		if (session.early) stop.abort()
		session.early = false
		request.addEventListener("abort", () => stop.abort())
		const turn = run(session, blocks, stop.signal)
		session.ended = turn.catch(() => undefined)
		return await turn
	} finally {
		if (cancel || fault("refused-second-prompt-detaches-cancel")) delete session.running
	}
}

async function run(session: Session, blocks: ContentBlock[], signal: AbortSignal): Promise<PromptResponse> {
	const settings = { ...session.config, callbacks: [new Tokens(session)], recursionLimit: 200 }
	const config = { ...settings, signal }
	try {
		session.asking = false
		const left = session.open // the agent may have ended before the user answered
		if (left) {
			const late = await answer(session, left, signal)
			delete session.open
			await session.agent.invoke(new Command({ resume: late }), config)
		}
		const again = session.failed && fault("prompt-after-failed-turn-not-sent")
		session.failed = false
		let result = await session.agent.invoke(again ? null : { messages: [fromPrompt(blocks)] }, config)
		for (let asked = interrupts(result); asked.length > 0; asked = interrupts(result)) {
			const call = asked[0]!.value
			if (fault("cancelled-question-asked-again")) session.open = call
			session.asking = fault("text-after-rejection-not-shown")
			const resume = await answer(session, call, signal)
			delete session.open
			if (resume.type !== "reject") session.asking = false
			const deaf = fault("cancel-after-permission-not-heard")
			result = await session.agent.invoke(new Command({ resume }), deaf ? settings : config)
		}
		return { stopReason: result.stop as StopReason, _meta: { "langchain-agent/turn": result.turns } }
	} catch (e) {
		if (signal.aborted) return { stopReason: "cancelled" }
		const stop = stopOfError(e)
		if (stop) return { stopReason: stop }
		session.failed = true
		throw toRequestError(e)
	} finally {
		const cancelled = signal.aborted && fault("cancelled-calls-told-as-cancelled")
		const status = cancelled ? ("cancelled" as "failed") : "failed"
		if (!signal.aborted || !fault("calls-cancelled-at-permission-stay-pending")) await endAll(session, status)
	}
}

function interrupts(result: object): { value: ToolCall }[] {
	return (result as { __interrupt__?: { value: ToolCall }[] }).__interrupt__ ?? []
}
