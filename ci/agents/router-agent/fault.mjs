// One mistake at a time, switched on by FAULT=NAME; faults.yaml says what each of them does.
import { faults } from '../switch.mjs';

/** Reports whether a mistake is on. */
export const fault = faults('router', [
  'cancel-before-first-byte-lost',
  'idle-told-between-tool-rounds',
  'cancel-at-permission-never-idle',
  'replay-joins-messages-around-tools',
  'resume-replaces-running-session',
  'updates-doubled-after-resume',
  'same-prompt-same-message-id',
  'tool-ids-restart-after-resume',
  'next-page-ignores-cwd',
  'refused-option-value-kept',
  'close-answers-before-tool-ends',
  'early-model-failure-fails-inserted-prompt',
  'running-not-told-after-cancel',
  'always-yes-by-first-word',
  'v1-cancelled-tool-has-v2-status',
  'requires-action-stays-after-no',
  'resume-tells-default-mode',
  'cancel-kills-shell-not-its-children',
  'split-character-garbled',
  'replayed-cancelled-tool-stays-in-progress',
]);
