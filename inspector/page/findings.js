import { ms, diff, folded } from "./dom.js";

// What is wrong: each defect of a result once, whoever found it.

// outcome is the result of a transcript, or what the map of its sweep says of it.
export const outcome = c => c.result || c.told;
export const shown = r => (!r ? "unjudged" : r.verdict === "fail" && r.known ? "known" : r.verdict);
export const link = (key, view, seq, more) => {
  const q = new URLSearchParams(Object.entries(more || {}).filter(([, v]) => v)).toString();
  return "#/s/" + encodeURIComponent(key) + (view ? "/" + view : "") + (seq ? "/" + seq : "") + (q ? "?" + q : "");
};
export const worst = ["error", "fail", "inconclusive", "warn", "lint", "skip", "known", "info"];

// instead says what a failure expected and what came.
const instead = f =>
  "expected " +
  (f.expected || []).join(" or ") +
  ", got " +
  (f.observed || "nothing").split("\n")[0].replace(/^#\d+ (-->|<--) /, "");

// unlike is whether a sentence says more than the one of the scenario, which a check has that has none of its own.
const unlike = (title, r) => title && title !== r.title;

// ofFailure is a problem as a wait that failed tells it. Where it names no entry, one looks where it stood.
function ofFailure(f, more) {
  const last = /#(\d+)/.exec((f.tail || []).at(-1) || "");
  return {
    statement: f.statement,
    expected: (f.expected || []).join("\nor "),
    got: f.observed,
    reason: f.reason,
    parts: [
      ["timer", f.timer],
      ["where", f.where],
      ["agent", f.process],
      ["what to do", f.advice],
    ],
    below: () => [
      f.diff && diff(f.diff),
      f.tail && folded("the entries before", f.tail.join("\n")),
      folded("stderr", f.stderr),
    ],
    entries: f.entries || [],
    stood: last ? Number(last[1]) : 0,
    requirements: f.requirement || [],
    ...more,
  };
}

function ofCheck(c, r) {
  const title =
    (unlike(c.title, r) && c.title) ||
    (c.failure && instead(c.failure)) ||
    (!c.not_reached && c.reason) ||
    c.title ||
    c.slug;
  const head = {
    cls: c.known ? "known" : c.verdict,
    known: Boolean(c.known),
    id: c.id,
    checks: [c.slug],
    title: title + (c.not_reached ? " (not reached: an earlier line failed)" : ""),
    late: c.not_reached ? 1 : 0,
  };
  if (c.failure) return ofFailure(c.failure, { ...head, requirements: c.requirements || c.failure.requirement || [] });
  return { ...head, requirements: c.requirements || [], entries: [], reason: c.reason, parts: [] };
}

const ofFinding = f => ({
  cls: f.known ? "known" : f.class,
  known: Boolean(f.known),
  id: f.rule,
  point: f.point,
  title: f.message + (f.count > 1 ? ` (${f.count} places)` : ""),
  entries: f.entries || [],
  citation: f.citation,
  requirements: f.requirements || [],
  detail: f.detail,
  parts: [["session", f.session]],
});

// joined is all problems with those checks, and the failure, taken into a finding that blame the same for the same
// requirement or have its words for a reason.
function joined(checks, findings) {
  const rest = checks.filter(c => {
    const same = f => [c.title, c.reason].includes(f.title) || f.requirements.some(q => c.requirements.includes(q)),
      of = findings.find(f => f.cls === c.cls && same(f));
    if (!of || c.late) return true;
    for (const part of ["statement", "expected", "got", "stood"]) of[part] ||= c[part];
    of.checks = [...(of.checks || []), ...(c.checks || [])];
    of.parts = [...of.parts, ...c.parts];
    of.below ||= c.below;
    return false;
  });
  return [...rest, ...findings];
}

// problems are what went wrong in a result, one object for each: cls, id, title, entries and what is known of it.
const found = new WeakMap();
export function problems(r) {
  if (!r) return [];
  if (!found.has(r)) found.set(r, find(r));
  return found.get(r);
}
function find(r) {
  const all = [];
  const failed = (r.checks || []).filter(c => c.verdict !== "pass").map(c => ofCheck(c, r));
  if (r.failure)
    failed.unshift(
      ofFailure(r.failure, {
        cls: r.known ? "known" : r.failure_class,
        known: Boolean(r.known),
        title: r.reason || r.failure.reason || instead(r.failure),
      }),
    );
  all.push(...joined(failed, (r.findings || []).map(ofFinding)));
  const plain = { requirements: [], entries: [], parts: [] };
  if (r.golden && r.golden.diff)
    all.push({
      ...plain,
      cls: r.golden.known ? "known" : r.golden.state === "differs" ? "fail" : "info",
      id: "golden",
      title: "the messages differ from the golden " + (r.golden.path || ""),
      below: () => [diff(r.golden.diff)],
    });
  if (!all.length && r.reason) all.push({ ...plain, cls: r.verdict, title: r.reason });
  return all.sort((a, b) => worst.indexOf(a.cls) - worst.indexOf(b.cls) || (a.late || 0) - (b.late || 0));
}

// masked is a sentence without what differs from scenario to scenario.
const masked = text => (text || "").replace(/\d+|"[^"]*"|'[^']*'|(?:\/[^\s/:]+)+/g, "…");

// causeOf is the cause of a run that a problem of a scenario has, if the run names one.
export const causeOf = (run, r, p) =>
  ((run && run.causes) || []).find(
    c =>
      r &&
      c.scenarios.includes(r.id) &&
      (c.id && p.id
        ? [p.id, p.id + " " + p.point, ...(p.point ? [] : p.requirements), ...(p.checks || [])].includes(c.id)
        : masked(c.title) === masked(p.title)),
  );
// named gives a cause that has no more than the sentence of a scenario what went wrong there.
export function named(run) {
  const byId = new Map((run.results || []).map(r => [r.id, r]));
  for (const c of run.causes || []) {
    const r = byId.get(c.scenarios[0]);
    if (r && !unlike(c.title, r) && headline(r)) c.title = headline(r).title;
  }
}
export const toCause = c => "#/?" + new URLSearchParams({ cause: c.id || c.title });

// firstFrame is where to look first: the last entry of the worst problem that has any.
export const firstFrame = list => {
  const p = list.find(x => x.entries.length || x.stood);
  return p && (p.entries.at(-1) || p.stood);
};
export const opened = c => link(c.key, firstFrame(problems(c.result)) ? "frames" : "", firstFrame(problems(c.result)));

// headline is the problem that a verdict is about.
export function headline(r) {
  const list = problems(r);
  return list.find(p => p.cls === shown(r)) || (r && r.verdict !== "pass" && list[0]) || null;
}

// waited says for what a scenario waited that did little else.
export function waited(r) {
  const w = r.waits || {};
  const most = [
    ["starting", w.start_ns],
    ["at deadlines", w.deadline_ns],
    ["lingering", w.linger_ns],
    ["at the exit", w.exit_ns],
  ].find(([, took]) => 2 * took > r.duration_ns);
  return most ? ` (${ms(most[1])} ${most[0]})` : "";
}
