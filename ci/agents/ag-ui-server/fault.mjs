// One mistake at a time, switched on by FAULT=NAME; faults.yaml says what each of them does.
import { faults } from '../switch.mjs';

/** Reports whether a mistake is on. */
export const fault = faults('ag-ui-server', [
  'whitespace-delta-dropped',
  'buffered-text-lost-before-call',
  'split-character-broken',
  'cut-reply-with-text-counts-as-whole',
  'results-paired-by-finishing-order',
  'front-call-beside-own-call-answered',
  'snapshot-has-one-result-per-reply',
  'snapshot-renames-text-beside-calls',
  'stored-state-beats-posted-state',
  'finish-ids-of-newest-run',
  'hang-up-aborts-all-runs',
  'unknown-tool-errors-then-finishes',
  'error-without-body-has-no-message',
  'first-accept-counts-for-all',
  'long-history-loses-its-start',
  'malformed-arguments-end-run',
  'hang-up-between-tools-not-heard',
  'context-dropped-on-later-runs',
  'image-beside-text-dropped',
  'context-joins-history',
]);
