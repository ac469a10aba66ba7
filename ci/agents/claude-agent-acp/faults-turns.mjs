// Mistakes in a turn: cancelling, permissions, what is shown, how it ends.
const agent = 'acp-agent.js';

export const turns = {
  'idle-cancel-ends-next-prompt': [
    {
      file: agent,
      near: 'async cancelTurns(',
      find: '= this.promptsReceived;',
      // With nothing to cancel, a prompt may be on its way.
      put: '= this.promptsReceived + (session.turnQueue?.some((turn) => !turn.settled) ? 0 : 1);',
    },
  ],

  'cancel-leaves-waiting-prompt-unanswered': [
    { file: agent, find: 'turn.resolve({ stopReason: "cancelled" });', put: '' },
  ],

  'later-cancel-does-not-interrupt': [
    {
      file: agent,
      find: '= session.query.interrupt();',
      put: '= (session.interrupting ??= session.query.interrupt());',
    },
  ],

  'rejected-tool-ends-turn-as-refusal': [
    {
      file: agent,
      find: 'const autoFallback =',
      put: `if (permissionResult.behavior === "deny")
                session.userSaidNo = true;
            const autoFallback =`,
    },
    {
      file: agent,
      find: 'const resetTurnScratch = () => {',
      put: 'const resetTurnScratch = () => {\n            session.userSaidNo = false;',
    },
    {
      file: agent,
      find: 'function turnOutcome(session, stopReason, extraMeta) {',
      put: `function turnOutcome(session, stopReason, extraMeta) {
    if (session.userSaidNo && stopReason === "end_turn")
        stopReason = "refusal";`,
    },
  ],

  'plan-approved-by-hand-restores-former-mode': [
    {
      file: agent,
      find: 'const autoFallback =',
      put: `const leaving = permissionResult.updatedPermissions?.find((update) => update.type === "setMode");
            if (toolName === "ExitPlanMode" && leaving?.mode === "default" && session.prePlanMode)
                leaving.mode = session.prePlanMode;
            const autoFallback =`,
    },
  ],

  'yes-for-session-forgotten': [
    {
      file: 'permissions/effects.js',
      find: 'context.durableChangeSet.updates, true)',
      put: 'context.durableChangeSet.updates.filter((update) => update.destination !== "session"), true)',
    },
  ],

  'denied-call-never-closed': [
    {
      file: agent,
      find: 'const autoFallback =',
      // What the user has denied is over.
      put: `if (permissionResult.behavior === "deny") {
                session.emittedToolCalls.delete(toolUseID);
                delete session.toolUseCache[toolUseID];
            }
            const autoFallback =`,
    },
  ],

  'overwritten-file-shown-as-new': [
    {
      file: 'tool-calls/reporters/file-edit.js',
      near: 'class WriteReporter',
      find: 'return finalChange(toolResponse, context);',
      put: 'return {};',
    },
  ],

  'only-first-place-of-edit-shown': [
    {
      file: 'diff.js',
      near: 'function toolUpdateFromDiffToolResponse(',
      find: 'of response.structuredPatch)',
      put: 'of response.structuredPatch.slice(0, 1))',
    },
  ],

  'read-image-in-form-of-model': [
    { file: 'tool-calls/reporters/read.js', find: ': toAcpContentBlock(block, false)', put: ': block' },
  ],

  'repeated-piece-of-text-dropped': [
    {
      file: agent,
      find: 'export function streamEventToAcpNotifications(',
      put: `const lastPieces = new Map();
export function streamEventToAcpNotifications(`,
    },
    {
      file: agent,
      find: 'case "content_block_delta": {',
      put: `case "content_block_delta": {
            // Gateways send an event again after a hiccup.
            if (event.delta.type === "text_delta") {
                const piece = JSON.stringify([options?.messageId, event.index, event.delta.text]);
                if (lastPieces.get(sessionId + streamKey) === piece)
                    return [];
                lastPieces.set(sessionId + streamKey, piece);
            }`,
    },
  ],

  'retry-told-on-stdout': [
    {
      file: agent,
      near: 'case "api_retry": {',
      find: 'await publishSessionFailure(',
      put: 'process.stdout.write(title + "\\n");\n                                await publishSessionFailure(',
    },
  ],
};
