#!/usr/bin/env node
// Starts the program of this platform, which an optional dependency holds.
const { spawn } = require('node:child_process');

const platform = `acp-test-${process.platform}-${process.arch}`;
const file = process.platform === 'win32' ? 'acp-test.exe' : 'acp-test';
let program;
try {
  program = require.resolve(`${platform}/${file}`);
} catch {
  console.error(`acp-test: there is no package ${platform} beside this one: install it again without --omit=optional, or, ` +
    'where it does not exist, with Go: go install github.com/acp-test/acp-test/cmd/acp-test@latest');
  process.exit(2);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
// A terminal interrupts both; what is sent to this process alone is passed on.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', error => {
  console.error(`acp-test: starting ${program}: ${error.message}`);
  process.exit(2);
});
child.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + require('node:os').constants.signals[signal];
});
