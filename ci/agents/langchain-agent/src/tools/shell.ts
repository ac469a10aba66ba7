// Running commands: in the editor's terminal where it has one, else here.
import { spawn } from "node:child_process"
import { tool, type ToolRuntime } from "@langchain/core/tools"
import { z } from "zod"
import { fault } from "../fault.js"
import type { Artifact } from "../middleware/tool.js"
import type { Session } from "../session.js"

type Ended = { output: string; status: string | null }
type Terminal = Awaited<ReturnType<Session["client"]["createTerminal"]>>

export function shellTool(session: Session) {
	const terminals = new Map<string, Terminal>() // by their commands
	return tool(
		async ({ command }, runtime: ToolRuntime): Promise<[string, Artifact]> => {
			const { toolCallId, signal } = runtime
			if (session.capabilities.terminal) return inTerminal(session, command, toolCallId, terminals, signal)
			const late = (text: string) => {
				const content: Artifact["content"] = [{ type: "content", content: { type: "text", text } }]
				session.update({ sessionUpdate: "tool_call_update", toolCallId, content }).catch(() => undefined)
			}
			const { output, status } = await here(command, session.cwd, late, signal)
			return [told({ output, status }), { failed: status !== null, ...exit(status) }]
		},
		{ name: "run_shell", description: "Runs a shell command", schema: z.object({ command: z.string() }), responseFormat: "content_and_artifact" },
	)
}

function told({ output, status }: Ended): string {
	return status === null ? output : `${output}\nThe command failed: ${status}.`
}

/** How a command has failed, for the editor. */
function exit(status: string | null): Artifact {
	return status !== null && fault("exit-status-at-root-of-update") ? { exitStatus: status } : {}
}

async function inTerminal(
	session: Session,
	command: string,
	toolCallId: string,
	terminals: Map<string, Terminal>,
	signal?: AbortSignal,
): Promise<[string, Artifact]> {
	const same = fault("same-command-again-uses-released-terminal")
	const known = same && terminals.get(command)
	const run = { command: "sh", args: ["-c", command], cwd: session.cwd, outputByteLimit: 100_000 }
	const terminal = known || (await session.client.createTerminal({ sessionId: session.id, ...run }))
	if (same) terminals.set(command, terminal)
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
		return [told({ output, status }), { content, failed: status !== null, ...exit(status) }]
	} finally {
		signal?.removeEventListener("abort", stop)
		if (!signal?.aborted) await terminal.release()
	}
}

/** Runs a command in a process group of its own, so that all of it can be ended. */
function here(command: string, cwd: string, late: (output: string) => void, signal?: AbortSignal): Promise<Ended> {
	return new Promise((resolve, reject) => {
		const child = spawn("sh", ["-c", command], { cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] })
		let output = ""
		child.stdout.on("data", (data) => (output += data))
		child.stderr.on("data", (data) => (output += data))
		const whole = fault("stop-kills-shell-not-what-it-started") ? 1 : -1
		const by = fault("command-deaf-to-sigterm-survives-stop") ? "SIGTERM" : "SIGKILL"
		const stop = () => {
			if (child.pid) process.kill(whole * child.pid, by)
			// The pipes may hold something that is not read yet.
			if (fault("output-of-stopped-command-told-late")) setTimeout(() => output && late(output), 100)
		}
		if (signal?.aborted) stop()
		signal?.addEventListener("abort", stop)
		child.on("error", reject)
		child.on("close", (code, by) => {
			signal?.removeEventListener("abort", stop)
			resolve({ output, status: by ? `ended by ${by}` : code ? `exit status ${code}` : null })
		})
	})
}
