// Why a turn ended.
import type { StopReason } from "@agentclientprotocol/sdk"
import type { AIMessage } from "@langchain/core/messages"
import { GraphRecursionError } from "@langchain/langgraph"

const reasons: Record<string, StopReason> = { length: "max_tokens", content_filter: "refusal" }

/** The stop reason for a reply, from the provider's finish reason. */
export function stopOf(reply: AIMessage): StopReason {
	return reasons[String(reply.response_metadata["finish_reason"])] ?? "end_turn"
}

/** The stop reason for what ended the agent, if it is one rather than an error. */
export function stopOfError(e: unknown): StopReason | undefined {
	return e instanceof GraphRecursionError ? "max_turn_requests" : undefined
}
