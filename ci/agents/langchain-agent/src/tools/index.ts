// The agent's own tools.
import type { StructuredToolInterface } from "@langchain/core/tools"
import type { Session } from "../session.js"
import { fileTools } from "./files.js"
import { searchTool } from "./search.js"
import { shellTool } from "./shell.js"
import { Workspace } from "./workspace.js"

export function tools(session: Session): StructuredToolInterface[] {
	return [...fileTools(new Workspace(session)), searchTool(session), shellTool(session)]
}
