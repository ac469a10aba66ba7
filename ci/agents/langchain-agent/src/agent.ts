// The LangChain agent of a session.
import { ChatOpenAI } from "@langchain/openai"
import type { StructuredToolInterface } from "@langchain/core/tools"
import { createAgent } from "langchain"
import type { FileSaver } from "./checkpoints.js"
import { modeMiddleware } from "./middleware/mode.js"
import { permissionMiddleware } from "./middleware/permission.js"
import { sessionMiddleware } from "./middleware/session.js"
import { toolMiddleware } from "./middleware/tool.js"
import type { Session } from "./session.js"

export function build(session: Session, tools: StructuredToolInterface[], checkpointer: FileSaver) {
	return createAgent({
		model: new ChatOpenAI({ model: process.env["OPENAI_MODEL"] ?? "gpt-5-mini", maxRetries: 2 }),
		systemPrompt: `You are a coding agent. You work in ${session.cwd}.`,
		tools,
		checkpointer,
		// What looks at a reply of the model runs from the last to the first:
		// calls are shown, then the mode has its say, then the user.
		middleware: [sessionMiddleware(), permissionMiddleware(session), modeMiddleware(session), toolMiddleware(session)],
	})
}

export type Agent = ReturnType<typeof build>
