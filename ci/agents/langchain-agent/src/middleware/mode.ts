// Modes: what the agent may do without the user, and at all.
import { RequestError, type SessionModeState } from "@agentclientprotocol/sdk"
import { ToolMessage } from "@langchain/core/messages"
import { createMiddleware } from "langchain"
import { z } from "zod"
import { fault } from "../fault.js"
import type { Session } from "../session.js"
import { openCalls } from "./calls.js"
import { end, hasEffect, shown } from "./tool.js"

const modes = {
	agentic: { name: "Agentic", description: "Changes files and runs commands without asking" },
	interactive: { name: "Interactive", description: "Asks before it changes anything" },
	readonly: { name: "Read-only", description: "Reads and searches, and changes nothing" },
	planning: { name: "Planning", description: "Makes a plan of the changes instead of changing anything" },
}

export type Mode = keyof typeof modes

export function modeState(session: Session): SessionModeState {
	return { currentModeId: session.mode, availableModes: Object.entries(modes).map(([id, mode]) => ({ id, ...mode })) }
}

/** The mode that was set last, in whatever session. */
let latest: Mode | undefined

export function setMode(session: Session, id: string) {
	if (!Object.hasOwn(modes, id) && !fault("unknown-mode-taken")) throw RequestError.invalidParams({ modeId: id }, "there is no such mode")
	session.mode = latest = id as Mode
}

/** The mode a reply is treated in: what the user sets later is for later replies. */
export const modeSchema = z.object({ mode: z.string().default(fault("mode-fixed-by-first-reply") ? "" : "interactive") })

export function modeMiddleware(session: Session) {
	return createMiddleware({
		name: "ModeMiddleware",
		stateSchema: modeSchema.extend({ plan: z.array(z.string()).default([]) }),
		afterModel: async (state) => {
			const elsewhere = fault("mode-of-other-session-counts") && latest
			const mode = (fault("mode-fixed-by-first-reply") && state.mode) || elsewhere || session.mode
			if (mode === "agentic" || mode === "interactive") return { mode }
			const plan = [...state.plan]
			const from = fault("plan-forgets-steps-of-earlier-replies") ? plan.length : 0
			const refused: ToolMessage[] = []
			const changes = openCalls(state.messages).calls.filter(hasEffect)
			for (const call of fault("second-change-of-reply-escapes-mode") ? changes.slice(0, 1) : changes) {
				if (mode === "planning") {
					plan.push(shown(call, session).title)
					await tell(session, plan.slice(from))
				}
				refused.push(new ToolMessage({ tool_call_id: call.id!, name: call.name, status: "error",
					content: mode === "planning" ? `Planned as step ${plan.length}. Nothing was changed.` : "Nothing was changed: the mode is read-only." }))
				await end(session, refused.at(-1)!)
			}
			return { mode, plan, messages: refused }
		},
	})
}

/** A plan is always told as a whole. */
async function tell(session: Session, plan: string[]) {
	await session.update({ sessionUpdate: "plan", entries: plan.map((content) => ({ content, priority: "medium", status: "pending" })) })
}
