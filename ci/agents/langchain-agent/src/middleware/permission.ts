// Permission: a call that may change something interrupts the graph until the
// user approves, edits or rejects it. What is rejected goes back to the model.
import { methods, type PermissionOptionKind, type RequestPermissionRequest, type RequestPermissionResponse } from "@agentclientprotocol/sdk"
import { ToolMessage } from "@langchain/core/messages"
import type { ToolCall } from "@langchain/core/messages/tool"
import { interrupt } from "@langchain/langgraph"
import { createMiddleware } from "langchain"
import { z } from "zod"
import { fault } from "../fault.js"
import type { Session } from "../session.js"
import { openCalls } from "./calls.js"
import { modeSchema } from "./mode.js"
import { end, hasEffect, shown } from "./tool.js"

type Decision = { type: "approve" | "edit" | "reject"; always?: boolean; args?: ToolCall["args"]; message?: string }

const stateSchema = modeSchema.extend({ always: z.record(z.string(), z.enum(["approve", "reject"])).default({}) })

export function permissionMiddleware(session: Session) {
	return createMiddleware({
		name: "PermissionMiddleware",
		stateSchema,
		afterModel: {
			canJumpTo: ["model"],
			// After an answer the hook runs again from its beginning, with the
			// answers so far: it must ask for the same in the same order.
			hook: async (state) => {
				const { reply, calls } = openCalls(state.messages)
				const always = { ...state.always }
				const rejected: ToolMessage[] = []
				const mode = fault("mode-set-during-question-overrules-answer") ? session.mode : state.mode
				const early = fault("answers-shift-after-rejection")
				const asked = calls.filter((c) => hasEffect(c) && mode !== "agentic")
				for (const call of early ? asked.filter((c) => session.calls.has(c.id!)) : asked) {
					const kept = always[call.name]
					const allow = kept && fault("reject-always-kept-as-allow")
					const decision: Decision = allow ? { type: "approve" } : kept ? { type: kept } : interrupt(call)
					if (decision.always && decision.type !== "edit") always[call.name] = decision.type
					if (decision.type === "edit") call.args = decision.args ?? call.args
					if (decision.type === "reject") {
						rejected.push(new ToolMessage({ tool_call_id: call.id!, name: call.name, status: "error", content: decision.message ?? "The user rejected this call." }))
						if (early) await end(session, rejected.at(-1)!)
					}
				}
				for (const result of rejected) await end(session, result)
				const allDone = reply?.tool_calls?.length && calls.length === rejected.length
				const told = allDone || !fault("rejected-call-runs-beside-allowed-one") ? rejected : []
				const messages = [...(reply ? [reply] : []), ...told]
				return { always, messages, ...(allDone ? { jumpTo: "model" as const } : {}) }
			},
		},
	})
}

const options: { optionId: string; kind: PermissionOptionKind; name: string }[] = [
	{ optionId: "allow", kind: "allow_once", name: "Allow" },
	{ optionId: "allow-always", kind: "allow_always", name: "Allow from now on" },
	{ optionId: "reject", kind: "reject_once", name: "Reject" },
	{ optionId: "reject-always", kind: "reject_always", name: "Reject from now on" },
]

/** An editor that lets users change a call puts the new arguments here. */
const editedArgs = "langchain-agent/args"

/** Asks the user about the call that interrupted the graph. */
export async function answer(session: Session, call: ToolCall, signal: AbortSignal): Promise<Decision> {
	const params: RequestPermissionRequest = { sessionId: session.id, toolCall: { ...shown(call, session), status: "pending" }, options }
	const request = session.client.request(methods.client.session.requestPermission, params)
	let reply: RequestPermissionResponse
	try {
		reply = await Promise.race([request, aborted(signal)])
	} catch (e) {
		signal.throwIfAborted()
		return { type: "reject", message: `The user could not be asked: ${(e as Error).message}` }
	}
	signal.throwIfAborted()
	const { outcome } = reply
	if (outcome.outcome !== "selected") return { type: "reject" }
	const kind = options.find((o) => o.optionId === outcome.optionId)?.kind
	const always = kind?.endsWith("always") ?? false
	if (!kind?.startsWith("allow")) return { type: "reject", always }
	const args = outcome._meta?.[editedArgs]
	return args && typeof args === "object" ? { type: "edit", args: args as ToolCall["args"] } : { type: "approve", always }
}

function aborted(signal: AbortSignal): Promise<never> {
	return new Promise((_, no) => {
		if (signal.aborted) no(signal.reason)
		signal.addEventListener("abort", () => no(signal.reason), { once: true })
	})
}
