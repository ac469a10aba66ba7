// The conversation of a loaded session, told again from its last checkpoint.
import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages"
import { fault } from "./fault.js"
import { reasoningOf, textOf, toPrompt } from "./mappers/content.js"
import { shown, outcome } from "./middleware/tool.js"
import type { Session } from "./session.js"

export async function replay(session: Session) {
	await session.ready
	const { values } = await session.agent.graph.getState(session.config)
	const messages: BaseMessage[] = values.messages ?? []
	const results = new Map(messages.filter((m) => ToolMessage.isInstance(m)).map((m) => [m.tool_call_id, m]))
	let before = ""
	for (const message of messages) {
		if (HumanMessage.isInstance(message)) {
			const blocks = toPrompt(message)
			const asked = JSON.stringify(blocks)
			if (asked === before && fault("same-prompt-again-missing-on-load")) continue // the turn was tried again
			before = asked
			if (fault("replay-tells-first-block-only")) blocks.splice(1)
			for (const content of blocks) await session.update({ sessionUpdate: "user_message_chunk", content })
		} else if (AIMessage.isInstance(message)) {
			const thought = reasoningOf(message)
			if (thought) await session.update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: thought } })
			const text = textOf(message)
			if (text) await session.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } })
			for (const call of message.tool_calls ?? []) {
				const result = results.get(call.id!)
				if (!result && fault("replay-stops-at-unfinished-call")) return
				await session.update({ sessionUpdate: "tool_call", ...shown(call, session), ...(result ? outcome(result) : { status: "failed" }) })
			}
		}
	}
}
