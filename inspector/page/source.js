import { Embedded, Served, json, text, unpacked } from "./trace.js";
import { Fields } from "./fields.js";
import { named } from "./findings.js";

// A source is where the page has its run and its transcripts from: itself, or a server.
export async function open() {
  const run = document.getElementById("run"),
    data = run ? embedded(JSON.parse(run.textContent)) : await served();
  for (const { run } of data.runs) named(run);
  return data;
}

const plain = r => r.id + (r.repeat ? "~" + r.repeat : "");

function embedded(run) {
  const open = new Map(),
    packed = document.getElementById("fields");
  let known;
  const fields = () =>
    known || (known = packed ? unpacked(packed).then(tables => new Fields(tables)) : Promise.resolve(new Fields()));
  const cases = (run.results || []).map((r, i) => ({
    key: plain(r),
    result: r,
    trace: () => {
      if (!open.has(i)) open.set(i, new Embedded(document.getElementById("t" + i)).load());
      return open.get(i);
    },
    text: async what => {
      const t = await open.get(i);
      return { rendered: t.rendered, before: t.before, workspace: t.workspace }[what] || "";
    },
  }));
  return { runs: [{ name: "", run, cases }], cases, actions: [], live: false, fields };
}

async function served() {
  const told = await json("runs"),
    known = new Map(); // by protocol
  const fields = async c => {
    const protocol = (await c.trace()).head.protocol || "";
    if (!known.has(protocol))
      known.set(
        protocol,
        json("fields?" + new URLSearchParams({ source: c.source, file: c.file })).then(tables => new Fields(tables)),
      );
    return known.get(protocol);
  };
  const rounds = told.sources.filter(from => from.round).sort((a, b) => b.round - a.round),
    rest = told.sources.filter(from => !from.round);
  const several = rounds.length + rest.length > 1;
  const runs = rest.map(from => ({
    name: from.name,
    run: runOf(from),
    cases: casesOf(from, several ? from.name + "/" : "", told.state),
    problem: from.problem,
  }));
  if (rounds.length) runs.unshift(beside(rounds, told.state));
  return { runs, cases: runs.flatMap(r => r.cases), actions: told.actions, live: true, state: told.state, fields };
}

// nameOf is what a transcript is called that no run names.
const nameOf = path => path.replace(/\/?transcript\.jsonl$/, "") || path;

// reported is the report about one transcript, by its name: a scenario may have been served to several editors.
function reported(from, path) {
  const report = (from.reports || {})[path],
    r = report && (report.results || [])[0];
  if (!r) return null;
  const id = nameOf(path),
    renamed = text => (text && text.startsWith(r.id) ? id + text.slice(r.id.length) : text);
  return {
    result: {
      ...r,
      id,
      title: r.title || r.id,
      checks: (r.checks || []).map(c => ({ ...c, id: renamed(c.id) })),
      artifacts: { ...r.artifacts, transcript: path },
    },
    causes: (report.causes || []).map(c => ({ ...c, id: renamed(c.id), scenarios: [id] })),
  };
}

// runOf is the run of a source. Where only single transcripts have reports, they are joined.
function runOf(from) {
  const run = from.results || { results: [] };
  const causes = [...(run.causes || [])];
  for (const c of from.files.flatMap(f => (reported(from, f.path) || { causes: [] }).causes)) {
    const same = causes.find(x => x.title === c.title && x.id === c.id);
    if (same) same.scenarios = [...same.scenarios, ...c.scenarios];
    else causes.push({ ...c });
  }
  return { ...run, causes };
}

// casesOf are the transcripts of a source, with their results; of those of a sweep, which are in no list of results,
// what its map says.
function casesOf(from, prefix, state) {
  const source = from.number,
    cases = [],
    seen = new Set(),
    files = new Set(from.files.map(f => f.path));
  const cells = new Map((((from.results || {}).sweep || {}).cells || []).map(c => [c.out, c]));
  const add = (key, result, file, modified) => {
    let at = null;
    const cell = cells.get(file),
      told = !result &&
        cell && {
          verdict: cell.verdict,
          title: `${cell.scenario}: ${cell.action} ${cell.point}`,
          reason: cell.finding,
        };
    cases.push({
      key: prefix + key,
      result,
      told,
      file,
      source,
      live: !result && !told,
      fresh: Date.now() - modified < 10000,
      scratch: from.name === "scratch",
      trace: () => at || (at = new Served({ source, file }).load(state)),
      close: async () => {
        if (at) (await at).close();
        at = null;
      },
      text: async what => {
        if (what === "canonical") return text("canonical?" + new URLSearchParams({ source, file }));
        const name = result && (result.artifacts || {})[what];
        return name ? text("text?" + new URLSearchParams({ source, file: name })) : "";
      },
      judged: () => json("judged?" + new URLSearchParams({ source, file })),
    });
  };
  for (const r of (from.results || {}).results || []) {
    const file = (r.artifacts || {}).transcript;
    seen.add(file);
    add(plain(r), r, files.has(file) ? file : null);
  }
  for (const f of from.files)
    if (!seen.has(f.path)) add(nameOf(f.path), (reported(from, f.path) || { result: null }).result, f.path, f.modified);
  return cases;
}

// beside joins runs of a row, the newest first, into one: of each scenario the newest, and as last/ID the one before.
function beside(rounds, state) {
  const cases = [],
    newest = new Map(),
    last = new Map();
  for (const from of rounds) {
    for (const c of casesOf(from, "", state)) {
      c.round = from.round;
      if (!newest.has(c.key)) newest.set(c.key, c);
      else if (!last.has(c.key)) last.set(c.key, c);
    }
  }
  for (const [key, c] of last) {
    newest.get(key).last = c;
    c.key = "last/" + key;
    c.hidden = true;
  }
  cases.push(...newest.values(), ...last.values());
  const of = from => (from.results || {}).causes || [],
    inRound = (from, id) => (newest.get(id) || {}).round === from.round;
  const causes = rounds.flatMap(from =>
    of(from)
      .map(c => ({ ...c, scenarios: c.scenarios.filter(id => inRound(from, id)) }))
      .filter(c => c.scenarios.length),
  );
  const results = [...newest.values()].map(c => c.result).filter(Boolean),
    worst = ["error", "fail", "inconclusive"].find(v => results.some(r => r.verdict === v && !r.known)) || "pass";
  const changes = [...newest]
    .filter(([, c]) => c.result && c.last && c.last.result && c.last.result.verdict !== c.result.verdict)
    .map(([id, c]) => ({ id, what: "verdict", was: c.last.result.verdict, is: c.result.verdict }));
  const at = rounds.find(from => from.results),
    since = rounds.length > 1 ? { run: "the last run", changes } : undefined;
  const run = at
    ? {
        ...at.results,
        results,
        causes,
        verdict: worst,
        against: since,
        conformance: undefined,
        notes: [`round ${at.round}`, ...(at.results.notes || [])],
      }
    : { results: [] };
  return { name: "round " + rounds[0].round, run, cases, problem: rounds[0].problem };
}
