// The sessions: in memory while the agent lives, and a file each for the agents that come after it.
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import * as one from '@agentclientprotocol/sdk';
import { fault } from './fault.mjs';

const { RequestError } = one;
const HOME = join(process.env.ROUTER_HOME || join(homedir(), '.sdk-router'), 'sessions');
const PAGE = 10;
const live = new Map(); // by id; those that are closed keep their history
const file = (id) => join(HOME, `${id}.json`);

/** Writes what is kept of a session. Its log is what a replay shows, its messages are what the model gets. */
export function save({ id, cwd, made, used, mode, always, calls, messages, log }) {
  mkdirSync(HOME, { recursive: true });
  writeFileSync(`${file(id)}.new`, JSON.stringify({ id, cwd, made, used, mode, always, calls, messages, log }));
  renameSync(`${file(id)}.new`, file(id));
}

// stored reads a session of an agent that has ended, and with it the work that it was at.
function stored(id) {
  if (!/^[0-9a-f-]+$/.test(id)) return undefined;
  try {
    const s = { ...JSON.parse(readFileSync(file(id), 'utf8')), open: false, work: null, turn: null };
    if (fault('replayed-cancelled-tool-stays-in-progress')) return s;
    for (const e of s.log) if (e.status === 'pending' || e.status === 'in_progress') e.status = 'cancelled';
    return s;
  } catch {
    return undefined;
  }
}

/** Makes a session. */
export function fresh(params, client) {
  const made = new Date().toISOString();
  const s = { id: randomUUID(), made, used: made, mode: 'ask', always: [], calls: 0, messages: [], log: [] };
  return begin({ ...s, work: null, turn: null }, params, client);
}

/** Finds a session that is there, open or not. */
export function known(id) {
  const s = (!fault('resume-replaces-running-session') && live.get(id)) || stored(id);
  if (!s) throw RequestError.sessionNotFound(id);
  return s;
}

/** Finds a session that is open. */
export function find(id) {
  const s = live.get(id);
  if (!s?.open) throw RequestError.sessionNotFound(id);
  return s;
}

/** Opens a session in a folder, and tells its editor of it from now on. */
export function begin(s, { cwd }, client) {
  if (!isAbsolute(cwd)) throw RequestError.invalidParams({ cwd }, 'cwd must be absolute');
  if (fault('tool-ids-restart-after-resume')) s.calls = 0;
  live.set(s.id, Object.assign(s, { cwd, client, open: true, heard: (s.heard ?? 0) + 1 }));
  save(s);
  return s;
}

/** Cancels what a session is at. */
export const cancel = (id) => live.get(id)?.work?.stop.abort();

/** Cancels what all sessions are at. */
export const cancelAll = () => live.forEach((s) => s.work?.stop.abort());

/** Ends the work of a session and closes it; one that is not there is closed already. */
export async function close(id) {
  const s = live.get(id);
  s?.work?.stop.abort();
  if (!fault('close-answers-before-tool-ends') || !s?.work?.runs) await s?.turn;
  if (s) s.open = false;
}

// all lists every session, the newest first.
function all() {
  let names = [];
  try {
    names = readdirSync(HOME).filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -5));
  } catch { /* there is none yet */ }
  const sessions = names.map((id) => live.get(id) ?? stored(id)).filter(Boolean);
  return sessions.sort((a, b) => (a.made === b.made ? a.id < b.id : a.made < b.made) ? 1 : -1);
}

/** Gives one page of the sessions, those of one folder if it is named. A cursor is the last id of the page before. */
export function page({ cwd, cursor }) {
  const sessions = all();
  const at = cursor == null ? 0 : sessions.findIndex((s) => s.id === cursor) + 1;
  if (cursor != null && !at) throw RequestError.invalidParams({ cursor }, 'there is no such page');
  const any = cwd == null || (at > 0 && fault('next-page-ignores-cwd'));
  const rest = sessions.slice(at).filter((s) => any || s.cwd === cwd);
  const shown = rest.slice(0, PAGE);
  return {
    sessions: shown.map((s) => ({ sessionId: s.id, cwd: s.cwd, updatedAt: s.used })),
    ...(rest.length > PAGE && { nextCursor: shown.at(-1).id }),
  };
}
