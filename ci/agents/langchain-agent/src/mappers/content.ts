// Content of ACP as LangChain's, and back.
import type { ContentBlock } from "@agentclientprotocol/sdk"
import { HumanMessage, type AIMessage, type AIMessageChunk, type MessageContent } from "@langchain/core/messages"
import { fault } from "../fault.js"

type Part = Exclude<MessageContent, string>[number]

/** The prompt as a message. It keeps the blocks as they came: a replay tells them. */
export function fromPrompt(blocks: ContentBlock[]): HumanMessage {
	return new HumanMessage({ content: blocks.map(part), additional_kwargs: { prompt: blocks } })
}

export function toPrompt(message: HumanMessage): ContentBlock[] {
	return (message.additional_kwargs["prompt"] as ContentBlock[] | undefined) ?? [{ type: "text", text: message.text }]
}

/** An address as the user would write it. */
const address = (uri: string): string => (fault("link-with-percent-sign-fails-prompt") ? decodeURI(uri) : uri)

function part(block: ContentBlock): Part {
	switch (block.type) {
		case "text":
			return { type: "text", text: block.text }
		case "image":
			return { type: "image_url", image_url: { url: `data:${block.mimeType};base64,${block.data}` } }
		case "resource_link":
			if (block.title && fault("link-title-hides-uri")) return { type: "text", text: block.title }
			return { type: "text", text: `[${block.title ?? block.name}](${address(block.uri)})` }
		case "resource":
			if ("text" in block.resource) return { type: "text", text: `<file uri="${block.resource.uri}">\n${block.resource.text}\n</file>` }
			return { type: "text", text: `<file uri="${block.resource.uri}" encoding="base64">\n${block.resource.blob}\n</file>` }
		default:
			return { type: "text", text: `[${block.type} content, which this agent does not take]` }
	}
}

export const textOf = (message: AIMessage | AIMessageChunk): string => message.text

export function reasoningOf(message: AIMessage | AIMessageChunk): string {
	const text = message.additional_kwargs["reasoning_content"]
	return typeof text === "string" ? text : ""
}
