import { Embedded, Served, json, text, unpacked } from "./trace.js";
import { Fields } from "./fields.js";

// A source is where the page has its run and its transcripts from: itself, or a server.
export async function open() {
  const run = document.getElementById("run");
  return run ? embedded(JSON.parse(run.textContent)) : served();
}

const plain = r => r.id + (r.repeat ? "~" + r.repeat : "");

function embedded(run) {
  const open = new Map(), packed = document.getElementById("fields");
  let known;
  const fields = () => known || (known = packed ? unpacked(packed).then(tables => new Fields(tables)) : Promise.resolve(new Fields()));
  const cases = (run.results || []).map((r, i) => ({
    key: plain(r), result: r, trace: () => {
      if (!open.has(i)) open.set(i, new Embedded(document.getElementById("t" + i)).load());
      return open.get(i);
    },
    text: async what => ({ rendered: (await open.get(i)).rendered, workspace: (await open.get(i)).workspace })[what],
  }));
  return { runs: [{ name: "", run, cases }], cases, actions: [], live: false, fields };
}

async function served() {
  const told = await json("runs");
  const several = told.sources.length > 1;
  const known = new Map(); // by protocol
  const fields = async c => {
    const protocol = (await c.trace()).head.protocol || "";
    if (!known.has(protocol)) known.set(protocol, json("fields?" + new URLSearchParams({ source: c.source, file: c.file })).then(tables => new Fields(tables)));
    return known.get(protocol);
  };
  const runs = told.sources.map((from, source) => {
    const run = from.results || { results: [] };
    const prefix = several ? from.name + "/" : "";
    const cases = [], seen = new Set();
    const add = (key, result, file, modified) => {
      let at = null;
      cases.push({
        key: prefix + key, result, file, source, live: !result, fresh: Date.now() - modified < 10000, scratch: from.name === "scratch",
        trace: () => at || (at = new Served({ source, file }).load()),
        close: async () => { if (at) (await at).close(); at = null; },
        text: async what => {
          if (what === "canonical") return text("canonical?" + new URLSearchParams({ source, file }));
          const name = result && (result.artifacts || {})[what];
          return name ? text("text?" + new URLSearchParams({ source, file: name })) : "";
        },
        judged: () => json("judged?" + new URLSearchParams({ source, file })),
      });
    };
    const files = new Set(from.files.map(f => f.path));
    for (const r of run.results || []) {
      const file = (r.artifacts || {}).transcript;
      seen.add(file);
      add(plain(r), r, files.has(file) ? file : null);
    }
    for (const f of from.files) if (!seen.has(f.path)) add(f.path.replace(/\/?transcript\.jsonl$/, "") || f.path, null, f.path, f.modified);
    return { name: from.name, run, cases, problem: from.problem };
  });
  return { runs, cases: runs.flatMap(r => r.cases), actions: told.actions, live: true, fields };
}
