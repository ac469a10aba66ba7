// Tokens as they come from the model: text is the agent's message, reasoning
// its thoughts.
import { BaseCallbackHandler, type HandleLLMNewTokenCallbackFields } from "@langchain/core/callbacks/base"
import type { AIMessage, AIMessageChunk } from "@langchain/core/messages"
import type { Generation, LLMResult } from "@langchain/core/outputs"
import { fault } from "./fault.js"
import { reasoningOf, textOf } from "./mappers/content.js"
import type { Session } from "./session.js"

export class Tokens extends BaseCallbackHandler {
	name = "acp-tokens"
	// Models stream for such a handler. With their own option to stream, some
	// then fetch an encoding from another host to count tokens.
	readonly lc_prefer_streaming = true
	// The turn must not end before its last token is on its way.
	override awaitHandlers = true

	private last = ""
	/** What was sent of the reply. */
	private told = ""

	constructor(private readonly session: Session) {
		super()
	}

	override async handleLLMNewToken(token: string, _index: unknown, _run: string, _parent?: string, _tags?: string[], fields?: HandleLLMNewTokenCallbackFields) {
		const chunk = fields?.chunk as { message?: AIMessageChunk } | undefined
		const thought = chunk?.message ? reasoningOf(chunk.message) : ""
		if (thought) await this.session.update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: thought } })
		if (token && token === this.last && fault("repeated-token-dropped")) return
		if (token) this.last = token
		if (this.session.asking) return // the question stays at the end of what the user sees
		this.told += token
		if (fault("whitespace-tokens-lost") ? token.trim() : token) await this.session.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: token } })
	}

	/** The finish reason of a streamed reply lies beside the message; the graph keeps the message alone. */
	override handleLLMEnd({ generations }: LLMResult) {
		const replies = generations.flat() as (Generation & { message?: AIMessage })[]
		for (const { generationInfo, message } of replies) {
			if (message && generationInfo?.["finish_reason"]) message.response_metadata["finish_reason"] = generationInfo["finish_reason"]
		}
		if (fault("later-reply-told-twice")) return this.tellWhole(replies[0]?.message)
	}

	/** Some servers give the reply in one piece. */
	private async tellWhole(message?: AIMessage) {
		const text = message ? textOf(message) : ""
		if (!text || text === this.told) return
		await this.session.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } })
	}
}
