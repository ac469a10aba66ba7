// The one option of a session: whether the agent asks before it writes a file or runs a command.
import * as one from '@agentclientprotocol/sdk';
import { fault } from './fault.mjs';

const MODES = { ask: 'Ask before writing and running', auto: 'Write and run without asking' };
const values = Object.entries(MODES).map(([value, name]) => ({ value, name }));

/** Gives the options in the form of the version. */
export const optionsOf = (version, { mode }) => [{
  [version === 1 ? 'id' : 'configId']: 'mode', name: 'Mode', category: 'mode',
  type: 'select', currentValue: mode, options: values,
}];

/** Sets an option, if there is such a one and such a value. */
export function setOption(s, { configId, type = 'id', value }) {
  if (fault('refused-option-value-kept') && configId === 'mode') s.mode = value;
  if (configId !== 'mode' || type !== 'id' || !Object.hasOwn(MODES, value)) {
    throw one.RequestError.invalidParams({ configId, value });
  }
  s.mode = value;
}
