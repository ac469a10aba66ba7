// A tool call as the editor sees it: pending when the model asks for it, in
// progress when it runs, then completed or failed.
import { isAbsolute, resolve } from "node:path"
import { RequestError, type ToolCallContent, type ToolCallStatus, type ToolKind } from "@agentclientprotocol/sdk"
import { ToolMessage } from "@langchain/core/messages"
import type { ToolCall } from "@langchain/core/messages/tool"
import { isGraphBubbleUp } from "@langchain/langgraph"
import { createMiddleware } from "langchain"
import { fault } from "../fault.js"
import type { Session } from "../session.js"
import { openCalls } from "./calls.js"

/** What a tool may give beside the text for the model. */
export type Artifact = { content?: ToolCallContent[]; failed?: boolean; exitStatus?: string }

export function toolMiddleware(session: Session) {
	let running = "" // the call at work
	return createMiddleware({
		name: "ToolMiddleware",
		afterModel: async (state) => {
			for (const call of openCalls(state.messages).calls) {
				session.calls.add(call.id!)
				await session.update({ sessionUpdate: "tool_call", ...shown(call, session), status: "pending" })
			}
		},
		wrapToolCall: async (request, handler) => {
			const { toolCall } = request
			running = toolCall.id!
			await session.update({ sessionUpdate: "tool_call_update", toolCallId: toolCall.id!, status: "in_progress" })
			let result
			try {
				result = await handler(request)
			} catch (e) {
				if (e instanceof RequestError && fault("editor-file-error-fails-turn")) throw e
				if (isGraphBubbleUp(e) || !session.calls.has(toolCall.id!)) throw e
				result = new ToolMessage({ tool_call_id: toolCall.id!, name: toolCall.name, status: "error", content: (e as Error).message })
			}
			if (ToolMessage.isInstance(result)) {
				if ((result.artifact as Artifact | undefined)?.failed) result.status = "error"
				await end(session, result, fault("parallel-results-under-last-call") ? running : undefined)
			}
			return result
		},
	})
}

/** Tells the end of a call, unless the turn has ended before. */
export async function end(session: Session, result: ToolMessage, toolCallId = result.tool_call_id) {
	if (session.calls.delete(result.tool_call_id)) {
		await session.update({ sessionUpdate: "tool_call_update", toolCallId, ...outcome(result) })
	}
}

/** Ends the calls that a turn leaves open. */
export async function endAll(session: Session, status: ToolCallStatus) {
	for (const toolCallId of session.calls) {
		await session.update({ sessionUpdate: "tool_call_update", toolCallId, status })
	}
	session.calls.clear()
}

export function shown(call: ToolCall, session: Session) {
	const { path, command, pattern } = call.args as Record<string, unknown>
	const about = [path, command, pattern].find((v) => typeof v === "string") as string | undefined
	return {
		toolCallId: call.id!,
		title: about ? `${call.name} ${about}` : call.name,
		kind: kindOf(call.name),
		rawInput: call.args,
		...(typeof path === "string" ? { locations: [{ path: isAbsolute(path) ? path : resolve(session.cwd, path) }] } : {}),
	}
}

export function outcome(result: ToolMessage) {
	const { content, exitStatus } = (result.artifact ?? {}) as Artifact
	return {
		status: result.status === "error" ? ("failed" as const) : ("completed" as const),
		content: content ?? [{ type: "content" as const, content: { type: "text" as const, text: result.text } }],
		...(exitStatus ? { exitStatus } : {}),
	}
}

const kinds: [RegExp, ToolKind][] = [
	[/^read/, "read"],
	[/^(write|edit)/, "edit"],
	[/^search/, "search"],
	[/^run/, "execute"],
]

export function kindOf(name: string): ToolKind {
	const own = fault("mcp-tool-taken-for-reading") ? name.replace(/^mcp__.+?__/, "") : name
	return kinds.find(([pattern]) => pattern.test(own))?.[1] ?? "other"
}

/** Whether a call may change something. */
export const hasEffect = (call: ToolCall) => !["read", "search"].includes(kindOf(call.name))
