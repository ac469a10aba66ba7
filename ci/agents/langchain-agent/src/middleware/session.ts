// What a session remembers from turn to turn: how many there were, how the last
// one ended, and a history that a model takes.
import { randomUUID } from "node:crypto"
import { AIMessage, HumanMessage, RemoveMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages"
import { createMiddleware } from "langchain"
import { z } from "zod"
import { fault } from "../fault.js"
import { stopOf } from "../mappers/stop.js"

const stateSchema = z.object({ turns: z.number().default(0), stop: z.string().default("end_turn") })

export function sessionMiddleware() {
	return createMiddleware({
		name: "SessionMiddleware",
		stateSchema,
		beforeAgent: (state) => ({ turns: state.turns + 1 }),
		wrapModelCall: async (request, handler) =>
			withOwnIds(await handler({ ...request, messages: withResults(request.messages) }), request.messages),
		afterAgent: (state) => {
			const replies = state.messages.filter((m) => AIMessage.isInstance(m))
			const reply = fault("stop-reason-of-first-reply") ? replies[0] : replies.at(-1)
			const stop = reply ? stopOf(reply) : "end_turn"
			if (stop !== "refusal") return { stop }
			// The specification: a refused prompt and all that came after it are
			// no part of the next prompt's context.
			const asked = (m: BaseMessage) => HumanMessage.isInstance(m)
			let from = state.messages.findLastIndex(asked)
			if (fault("refusal-drops-earlier-turns")) from = state.messages.findIndex(asked)
			if (fault("refusal-after-call-stays-in-context")) from = state.messages.length - 2
			return { stop, messages: state.messages.slice(from).map((m) => new RemoveMessage({ id: m.id! })) }
		},
	})
}

/** A turn that was cancelled leaves calls without a result, which providers refuse. */
function withResults(messages: BaseMessage[]): BaseMessage[] {
	const done = new Set(messages.filter((m) => ToolMessage.isInstance(m)).map((m) => m.tool_call_id))
	const last = messages.findLast((m) => AIMessage.isInstance(m))
	const cut = (m: BaseMessage) => m === last || !fault("cancelled-calls-answered-once")
	return messages.flatMap((m) => [
		m,
		...(AIMessage.isInstance(m) && cut(m) ? (m.tool_calls ?? []) : [])
			.filter((call) => !done.has(call.id!))
			.map((call) => new ToolMessage({ tool_call_id: call.id!, name: call.name, status: "error", content: "The user cancelled the turn." })),
	])
}

/** Some servers count the ids of calls anew in each reply. One that a call of before has would be taken for answered. */
function withOwnIds<T>(reply: T, before: BaseMessage[]): T {
	if (!AIMessage.isInstance(reply)) return reply
	const taken = new Set(before.flatMap((m) => (AIMessage.isInstance(m) ? m.tool_calls ?? [] : [])).map((call) => call.id))
	for (const call of reply.tool_calls ?? []) {
		if (taken.has(call.id)) call.id = `${call.id}-${randomUUID()}`
	}
	return reply
}
