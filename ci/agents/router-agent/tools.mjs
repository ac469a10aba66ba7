// What the model may do: read and write files, and run shell commands.
import { spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fault } from './fault.mjs';

const text = (description) => ({ type: 'string', description });

/** The tools by name. A call of one with a key asks the user first; the key is what an "always" is kept by. */
export const tools = {
  read_file: {
    kind: 'read', description: 'Reads a text file', properties: { path: text('Path of the file') },
    title: (a) => `Read ${a.path}`,
    run: (a, cwd, signal) => readFile(resolve(cwd, a.path), { encoding: 'utf8', signal }),
  },
  write_file: {
    kind: 'edit', description: 'Writes a text file',
    properties: { path: text('Path of the file'), content: text('All of it') },
    title: (a) => `Write ${a.path}`, always: 'Always allow writing files', key: () => 'write_file',
    run: async (a, cwd) => {
      const path = resolve(cwd, a.path);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, a.content);
      return `Wrote ${path}.`;
    },
  },
  run_shell: {
    kind: 'execute', description: 'Runs a shell command', properties: { command: text('The command') },
    title: (a) => `Run ${a.command}`, always: 'Always allow this command', key: (a) => `run_shell ${whole(a.command)}`,
    run: (a, cwd, signal) => shell(a.command, cwd, signal),
  },
};

// whole is what an "always" for a command goes by.
const whole = (command) => (fault('always-yes-by-first-word') ? command.trim().split(/\s/)[0] : command);

/** The tools as the model is told of them. */
export const offers = Object.entries(tools).map(([name, { description, properties }]) => ({
  type: 'function',
  function: { name, description, parameters: { type: 'object', properties, required: Object.keys(properties) } },
}));

/** Reads the arguments of a call, or says what is wrong with them. */
export function argumentsOf(tool, json) {
  const args = JSON.parse(json || '{}');
  for (const name of Object.keys(tool.properties)) {
    if (typeof args?.[name] !== 'string') throw new Error(`The argument ${name} is missing.`);
  }
  return args;
}

// shell runs a command in a process group of its own, so that a cancel ends its children too.
function shell(command, cwd, signal) {
  return new Promise((done, failed) => {
    const child = spawn('sh', ['-c', command], { cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    const kill = () => {
      try {
        if (fault('cancel-kills-shell-not-its-children')) child.kill('SIGKILL');
        else process.kill(-child.pid, 'SIGKILL');
      } catch { /* it has ended */ }
    };
    for (const pipe of [child.stdout, child.stderr]) pipe.setEncoding('utf8').on('data', (t) => { out += t; });
    signal.addEventListener('abort', kill, { once: true });
    child.on('error', failed).on('close', (code, by) => {
      signal.removeEventListener('abort', kill);
      if (code === 0) done(out);
      else failed(new Error(`${out}\nThe command failed: ${code ?? by}.`.trim()));
    });
  });
}
