// One mistake at a time, switched on by FAULT=NAME; faults.yaml says what each of them does.
import { faults } from '../switch.mjs';

/** Reports whether a mistake is on. */
export const fault = faults('langchain-ag-ui', [
  'repeated-token-dropped',
  'text-after-call-sent-into-closed-message',
  'reasoning-shares-id-with-text',
  'message-ids-count-per-run',
  'args-of-parallel-calls-go-to-first',
  'failed-tool-has-no-result',
  'own-tool-skipped-beside-front-tool',
  'delta-sent-before-it-is-checked',
  'set-state-changes-newest-run',
  'cancelled-approval-runs-tool',
  'one-answer-counts-for-all-interrupts',
  'interrupts-kept-for-newest-thread-only',
  'resume-repeats-call-events',
  'failure-after-text-ends-as-success',
  'hung-up-run-leaves-thread-busy',
  'large-result-cut-for-model-too',
  'hang-up-heard-between-steps-only',
  'repeated-user-message-deduplicated',
  'unanswered-call-beside-text-not-repaired',
  'front-tools-turn-streaming-off',
]);
