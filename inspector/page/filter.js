// A filter is words: all of them must hold. KEY:VALUE looks at what is known of an entry, text~WORDS
// and a word alone at its bytes. VALUE may list several with commas and have * in it; - in front negates.
export const keys = {
  from: "who: editor, agent, model, terminal, process, stderr, note",
  kind: "request, response, notification, model-chunk, …",
  method: "the method of a frame, or of the request that it answers",
  what: "the kind of an update, the method, or the kind of an event",
  session: "the id of a session, or s1, s2, … in the order in which they came",
  conn: "the process of the agent, from 0",
  seq: "numbers: 12 or 10..20 or 10..",
  time: "since the start: 1.5s..2s, 300ms..",
  size: "bytes: 1000..",
  is: "finding, problem (of a finding or malformed), open (a request without an answer), frame",
};
const columnOf = { from: "source", kind: "kind", method: "method", what: "label", session: "session" };

export function parse(query) {
  const terms = [];
  for (const m of query.matchAll(/(-?)(?:(\w+)(:|~))?("(?:[^"\\]|\\.)*"?|[^\s"]+)/g)) {
    const [, minus, key, sign, value] = m;
    const text = value[0] === '"' ? value.slice(1).replace(/"$/, "").replace(/\\(.)/g, "$1") : value;
    if (sign === ":" && !keys[key])
      return { error: `there is no ${key}: — ${Object.keys(keys).join(", ")}, or text~WORDS` };
    if (sign === "~" && key !== "text") return { error: `only text has ~, not ${key}` };
    terms.push({ not: minus === "-", key: sign === ":" ? key : "text", value: text });
  }
  return { terms };
}

const amount = { "": 1, us: 1, µs: 1, ms: 1e3, s: 1e6, m: 6e7, min: 6e7 };
function number(text, time) {
  const m = /^(\d+(?:\.\d+)?)(us|µs|ms|s|m|min)?$/.exec(text);
  return m ? Number(m[1]) * (time ? amount[m[2] || "ms"] : 1) : NaN;
}
function range(value, time) {
  const [a, b] = value.includes("..") ? value.split("..") : [value, value];
  return [a === "" ? -Infinity : number(a, time), b === "" ? Infinity : number(b, time)];
}
function wild(value) {
  const alternatives = value.split(",").map(v => v.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*"));
  return new RegExp("^(?:" + alternatives.join("|") + ")$", "i");
}

// test makes a function of an index for a term, or says what is wrong with it.
async function test(term, trace, marks, from) {
  const { key, value } = term;
  if (key === "text") {
    const found = await trace.find(value, from);
    return i => found.has(i);
  }
  if (key === "seq" || key === "time" || key === "size" || key === "conn") {
    const [a, b] = range(value, key === "time");
    if (Number.isNaN(a) || Number.isNaN(b))
      throw new Error(`${key}:${value} is no range; such as ${key === "time" ? "1.5s..2s" : "10..20"}`);
    const of = { seq: i => i + 1, time: i => trace.at[i], size: i => trace.size[i], conn: i => trace.origin[i] }[key];
    return i => of(i) >= a && of(i) <= b;
  }
  if (key === "is") {
    const tests = {
      finding: i => marks.has(i),
      problem: i => marks.has(i) || trace.name("kind", i) === "malformed",
      frame: i => ["editor", "agent"].includes(trace.name("source", i)),
      open: i => trace.name("kind", i) === "request" && !trace.answer(i),
    };
    if (!tests[value]) throw new Error(`is:${value}: is: takes ${Object.keys(tests).join(", ")}`);
    return tests[value];
  }
  const column = columnOf[key],
    like = wild(value);
  const listed =
    key === "session"
      ? new Set(
          value
            .split(",")
            .map(v => /^s(\d+)$/.exec(v))
            .filter(Boolean)
            .map(m => trace.sessions()[m[1] - 1]),
        )
      : new Set();
  const yes = trace.names.map(n => like.test(n) || listed.has(n));
  return i => yes[trace[column][i]];
}

// apply gives the indexes of the entries that a filter takes; null means all of them. before is its answer for
// the first entries, when there were fewer: what was taken then is still taken, unless an answer or a finding
// can have come to it.
export async function apply(query, trace, marks, before) {
  const { terms, error } = parse(query);
  if (error) throw new Error(error);
  if (!terms.length) return null;
  const kept =
    before && before.upTo <= trace.n && terms.every(t => t.key !== "is" && t.key !== "session")
      ? before
      : { rows: new Uint32Array(), upTo: 0 };
  const upTo = trace.n,
    tests = [],
    out = [];
  for (const t of terms) {
    const f = await test(t, trace, marks, kept.upTo);
    tests.push(t.not ? i => !f(i) : f);
  }
  for (let i = kept.upTo; i < upTo; i++) if (tests.every(f => f(i))) out.push(i);
  const rows = new Uint32Array(kept.rows.length + out.length);
  rows.set(kept.rows);
  rows.set(out, kept.rows.length);
  return { rows, upTo };
}
