import { lifecycle } from './faults-lifecycle.mjs';
import { turns } from './faults-turns.mjs';

/** What to change for each name that FAULT takes: in `file`, `find` (the first after `near`, if given) to `put`. */
export const faults = { ...turns, ...lifecycle };
