// Running commands: in the editor's terminal where it has one, else here.
import { spawn } from "node:child_process"
import { tool, type ToolRuntime } from "@langchain/core/tools"
import { z } from "zod"
import { fault } from "../fault.js"
import type { Artifact } from "../middleware/tool.js"
import type { Session } from "../session.js"

type Ended = { output: string; status: string | null }

export function shellTool(session: Session) {
	return tool(
		async ({ command }, runtime: ToolRuntime): Promise<[string, Artifact]> => {
			const { toolCallId, signal } = runtime
			if (session.capabilities.terminal) return inTerminal(session, command, toolCallId, signal)
			const { output, status } = await here(command, session.cwd, signal)
			return [told({ output, status }), { failed: status !== null }]
		},
		{ name: "run_shell", description: "Runs a shell command", schema: z.object({ command: z.string() }), responseFormat: "content_and_artifact" },
	)
}

function told({ output, status }: Ended): string {
	return status === null ? output : `${output}\nThe command failed: ${status}.`
}

async function inTerminal(session: Session, command: string, toolCallId: string, signal?: AbortSignal): Promise<[string, Artifact]> {
	const terminal = await session.client.createTerminal({ sessionId: session.id, command: "sh", args: ["-c", command], cwd: session.cwd, outputByteLimit: 100_000 })
	const content: Artifact["content"] = [{ type: "terminal", terminalId: terminal.id }]
	// Both are on their way before the turn ends. It may have ended by itself.
	const stop = () => {
		terminal.kill().catch(() => undefined)
		if (!fault("cancelled-terminal-killed-not-released")) terminal.release().catch(() => undefined)
	}
	try {
		signal?.addEventListener("abort", stop)
		if (signal?.aborted) stop()
		signal?.throwIfAborted() // a terminal that is released is not shown
		await session.update({ sessionUpdate: "tool_call_update", toolCallId, status: "in_progress", content })
		signal?.throwIfAborted() // a terminal that is released has no end to wait for
		const { exitCode, signal: by } = await terminal.waitForExit()
		signal?.throwIfAborted()
		const { output } = await terminal.currentOutput()
		const ended = fault("signalled-command-told-as-completed") ? null : by
		const status = ended ? `ended by ${ended}` : exitCode ? `exit status ${exitCode}` : null
		return [told({ output, status }), { content, failed: status !== null }]
	} finally {
		signal?.removeEventListener("abort", stop)
		if (!signal?.aborted) await terminal.release()
	}
}

/** Runs a command in a process group of its own, so that all of it can be ended. */
function here(command: string, cwd: string, signal?: AbortSignal): Promise<Ended> {
	return new Promise((resolve, reject) => {
		const child = spawn("sh", ["-c", command], { cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] })
		let output = ""
		child.stdout.on("data", (data) => (output += data))
		child.stderr.on("data", (data) => (output += data))
		const whole = fault("stop-kills-shell-not-what-it-started") ? 1 : -1
		const stop = () => child.pid && process.kill(whole * child.pid, "SIGKILL")
		if (signal?.aborted) stop()
		signal?.addEventListener("abort", stop)
		child.on("error", reject)
		child.on("close", (code, by) => {
			signal?.removeEventListener("abort", stop)
			resolve({ output, status: by ? `ended by ${by}` : code ? `exit status ${code}` : null })
		})
	})
}
