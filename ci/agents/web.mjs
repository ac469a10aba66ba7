// What the endpoints of AG-UI beside this file share: an HTTP server for a fetch handler, and the tools.
import { createServer } from 'node:http';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { Readable } from 'node:stream';

/** Serves a function of Request and Response, and prints where. The request's signal is aborted when its client has gone. */
export function serve(handle) {
  const server = createServer(async (req, res) => {
    const gone = new AbortController();
    res.on('close', () => res.writableFinished || gone.abort());
    const init = { method: req.method, headers: req.headers, signal: gone.signal };
    if (req.method !== 'GET' && req.method !== 'HEAD') Object.assign(init, { body: Readable.toWeb(req), duplex: 'half' });
    const answer = await handle(new Request(`http://${req.headers.host}${req.url}`, init)).catch((e) => new Response(String(e), { status: 500 }));
    res.writeHead(answer.status, Object.fromEntries(answer.headers)).flushHeaders();
    if (!answer.body) return res.end();
    Readable.fromWeb(answer.body).on('error', () => res.destroy()).pipe(res).on('close', function () { answer.body.locked || answer.body.cancel(); });
  });
  server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => console.error(`Listening at http://127.0.0.1:${server.address().port}/`));
}

const text = (description) => ({ type: 'string', description });
const path = text('Path of the file');
const whole = async (file, content) => {
  await mkdir(dirname(resolve(file)), { recursive: true });
  await writeFile(file, content);
  return `Wrote ${file}.`;
};

/** The tools of an agent, each with the JSON schema of its arguments. */
export const tools = {
  read_file: { description: 'Reads a text file', properties: { path }, run: (a) => readFile(a.path, 'utf8') },
  write_file: { description: 'Writes a text file', properties: { path, content: text('All of it') }, run: (a) => whole(a.path, a.content) },
  run_shell: {
    description: 'Runs a shell command', properties: { command: text('The command') },
    run: (a) => new Promise((done) => execFile('sh', ['-c', a.command], (e, out, err) => done(out + err + (e ? `\nThe command failed: ${e.code ?? e.signal}.` : '')))),
  },
};

export const schemaOf = (tool) => ({ type: 'object', properties: tool.properties, required: Object.keys(tool.properties), additionalProperties: false });
