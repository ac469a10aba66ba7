// One mistake at a time, switched on by FAULT=NAME; faults.yaml says what each of them does.
const NAMES = new Set([
  'cancel-before-attachments-read-lost',
  'cancel-while-streaming-leaves-session-busy',
  'cancel-at-permission-ends-as-end-turn',
  'cancel-hits-newest-turn',
  'always-yes-shared-by-sessions',
  'unknown-option-taken-as-yes',
  'new-file-written-before-asked',
  'message-id-same-in-every-turn',
  'text-with-finish-reason-lost',
  'same-tool-twice-shares-call-id',
  'mcp-error-reported-completed',
  'edit-location-relative',
  'second-edit-of-file-undoes-first',
  'history-lost-after-cancel',
  'rejection-not-told-to-model',
  'long-replay-after-response',
  'load-keeps-old-cwd',
  'read-lines-counted-from-zero',
  'later-model-failure-ends-as-end-turn',
  'unsupported-version-echoed',
  'cancel-not-heard-after-model-retry',
  'cancel-answered-before-permission-ends',
  'refusal-in-text-told-as-end-turn',
  'permission-error-taken-as-yes',
  'yes-once-holds-for-turn',
  'event-split-over-reads-lost',
  'list-folder-kind-invalid',
  'failed-write-reported-completed',
  'only-first-embedded-file-reaches-model',
  'prompt-echoed-live',
  'new-sessions-share-history',
  'replay-lacks-failed-tools',
  'cancelled-turn-not-saved',
  'request-limit-told-as-end-turn',
  'reads-through-editor-when-only-write-offered',
  'load-capability-is-object',
  'mcp-http-headers-only-on-initialize',
  'load-does-not-connect-mcp-servers',
  'edit-diff-path-relative',
  'end-of-input-waits-for-turn',
]);
const on = process.env.FAULT ?? '';
if (on && !NAMES.has(on)) {
  console.error(`quill: there is no fault ${on}`);
  process.exit(2);
}

/** Reports whether the fault is on. */
export const fault = (name) => on === name;
