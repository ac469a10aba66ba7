// The switch for the mistakes of an agent: one at a time, by the environment variable FAULT.

/** Returns what reports whether a mistake is on. A name that the agent has not ends it with status 2. */
export function faults(agent, names) {
  const on = process.env.FAULT ?? '';
  if (on && !names.includes(on)) {
    console.error(`${agent}: there is no fault ${on}`);
    process.exit(2);
  }
  return (name) => on === name;
}
