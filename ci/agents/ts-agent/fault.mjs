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
]);
const on = process.env.FAULT ?? '';
if (on && !NAMES.has(on)) {
  console.error(`quill: there is no fault ${on}`);
  process.exit(2);
}

/** Reports whether the fault is on. */
export const fault = (name) => on === name;
