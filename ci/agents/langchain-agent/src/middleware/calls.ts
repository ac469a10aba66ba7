// The calls of the model's last reply that have no result yet.
import { AIMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages"

export function openCalls(messages: BaseMessage[]) {
	const reply = messages.findLast((m) => AIMessage.isInstance(m))
	const done = new Set(messages.filter((m) => ToolMessage.isInstance(m)).map((m) => m.tool_call_id))
	return { reply, calls: (reply?.tool_calls ?? []).filter((call) => !done.has(call.id!)) }
}
