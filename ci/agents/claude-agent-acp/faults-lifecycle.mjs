// Mistakes in sessions: making, loading, resuming, listing, closing, deleting, their options and servers.
const agent = 'acp-agent.js';

export const lifecycle = {
  'close-of-idle-session-stops-nothing': [
    {
      file: agent,
      near: 'async closeSession(params) {',
      find: 'await this.teardownSession(',
      put: `// Only work has to be stopped.
        if (!this.sessions[params.sessionId].turnQueue?.length) {
            delete this.sessions[params.sessionId];
            return {};
        }
        await this.teardownSession(`,
    },
  ],

  'list-takes-cwd-as-prefix': [
    { file: agent, near: 'async listSessions(', find: 'dir: params.cwd ?? undefined', put: 'dir: undefined' },
    {
      file: agent,
      near: 'async listSessions(',
      find: 'if (!session.cwd)',
      put: 'if (!session.cwd || (params.cwd && !session.cwd.startsWith(params.cwd)))',
    },
  ],

  'replay-keeps-first-part-of-message': [
    {
      file: agent,
      find: 'const replayMessage =',
      put: 'const replayed = new Set();\n        const replayMessage =',
    },
    {
      file: agent,
      find: 'const replaySession =',
      // A message that is stored twice is shown once.
      put: `if (message.type === "assistant" && replayMessageId) {
                if (replayed.has(replayMessageId))
                    return;
                replayed.add(replayMessageId);
            }
            const replaySession =`,
    },
  ],

  'replay-lacks-images-of-prompts': [
    {
      file: agent,
      near: 'export function toAcpNotifications(',
      find: 'case "image":',
      put: 'case "image":\n                if (options?.replay && role === "user")\n                    break;',
    },
  ],

  'resume-in-new-process-replays': [
    {
      file: agent,
      near: 'async resumeSession(',
      find: 'const result =',
      put: 'const open = this.sessions[params.sessionId] !== undefined;\n        const result =',
    },
    {
      file: agent,
      near: 'async resumeSession(',
      find: 'this.afterSetupResponse(',
      put: `if (!open)
            await this.replaySessionHistory(params.sessionId);
        this.afterSetupResponse(`,
    },
  ],

  'unchanged-option-answered-alone': [
    {
      file: agent,
      find: 'const expectedType =',
      put: `if (option.currentValue === params.value)
            return { configOptions: [option] };
        const expectedType =`,
    },
  ],

  'mode-set-during-turn-only-shown': [
    {
      file: 'session-mode.js',
      near: 'async selectMode(',
      find: 'await session.query.',
      // It takes effect with the next prompt.
      put: 'if (!session.activeTurn)\n                await session.query.',
    },
  ],

  'mcp-servers-of-other-sessions-started-too': [
    { file: agent, find: 'const mcpServers = {};', put: 'const mcpServers = (this.mcpServers ??= {});' },
  ],
};
