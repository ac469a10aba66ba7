// A trace is a transcript in the page: what is known of every entry as columns, and the texts of those
// that are looked at. Entries have indexes from 0; their Seq, which links and findings have, is one more.
const columns = {
  at: Float64Array,
  ref: Uint32Array,
  size: Uint32Array,
  source: Uint16Array,
  kind: Uint16Array,
  method: Uint16Array,
  label: Uint16Array,
  session: Uint16Array,
  origin: Uint16Array,
};

export class Trace {
  constructor() {
    this.listeners = new Set();
    this.clear();
  }
  clear() {
    Object.assign(this, {
      n: 0,
      names: [""],
      head: {},
      answers: new Map(),
      answered: 0,
      ids: [],
      idsTo: 0,
      more: true,
      problem: "",
    });
    for (const [c, type] of Object.entries(columns)) this[c] = new type(256);
  }
  // add takes columns of entries; at the same index they replace what was there.
  add(from, n, parts) {
    if (from + n > this.at.length) {
      const room = Math.max(from + n, 2 * this.at.length);
      for (const [c, type] of Object.entries(columns)) {
        const next = new type(room);
        next.set(this[c].subarray(0, this.n));
        this[c] = next;
      }
    }
    for (const c of Object.keys(columns)) this[c].set(parts[c], from);
    this.n = from + n;
  }
  tell(what) {
    for (const f of this.listeners) f(what);
  }
  name(column, i) {
    return this.names[this[column][i]] || "";
  }
  // answer is the index of what completes a request, and 0 if nothing does: no answer is the first entry.
  answer(i) {
    for (; this.answered < this.n; this.answered++) {
      const ref = this.ref[this.answered];
      if (ref && !this.answers.has(ref - 1) && this.name("kind", this.answered) !== "written")
        this.answers.set(ref - 1, this.answered);
    }
    return this.answers.get(i) || 0;
  }
  // sessions are the ids of sessions in the order in which they came.
  sessions() {
    for (; this.idsTo < this.n; this.idsTo++) {
      const id = this.name("session", this.idsTo);
      if (id && !this.ids.includes(id)) this.ids.push(id);
      if (this.ids.length > 5000) break;
    }
    return this.ids;
  }
  sessionName(i) {
    const id = this.name("session", i);
    const k = id ? this.sessions().indexOf(id) : -1;
    return k < 0 ? id : "s" + (k + 1);
  }
  // short is a text with the names of sessions in place of their ids.
  short(line) {
    this.sessions().forEach((id, k) => {
      if (k < 50 && id.length > 4) line = line.replaceAll(id, "s" + (k + 1));
    });
    return line;
  }
  end() {
    return this.n ? this.at[this.n - 1] : 0;
  }
}

// unpacked is the JSON that an element of the page holds as base64 of its gzip.
export async function unpacked(element) {
  const bytes = Uint8Array.from(atob(element.textContent), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Embedded is a trace that the page itself holds.
export class Embedded extends Trace {
  constructor(element) {
    super();
    this.element = element;
  }
  async load() {
    const data = await unpacked(this.element);
    const rows = data.rows || [],
      order = ["at", "origin", "source", "kind", "method", "label", "session", "ref", "size"];
    const parts = {};
    order.forEach((c, k) => {
      parts[c] = rows.map(r => r[k]);
    });
    this.names = data.names;
    this.add(0, rows.length, parts);
    this.texts = rows.map(r => ({ line: r[9], raw: r[10], cut: Boolean(r[11]) }));
    ((this.rendered = data.rendered),
      (this.before = data.before),
      (this.workspace = data.workspace),
      (this.problem = data.problem || ""),
      (this.more = false));
    return this;
  }
  row(i) {
    return this.texts[i];
  }
  async rows(list) {
    return list.map(i => this.texts[i]);
  }
  async find(text, from) {
    const low = text.toLowerCase(),
      found = new Set();
    this.texts.forEach((t, i) => {
      if (i >= from && (t.raw.toLowerCase().includes(low) || t.line.toLowerCase().includes(low))) found.add(i);
    });
    return found;
  }
  async raw(i) {
    return new TextEncoder().encode(this.texts[i].raw);
  }
  close() {}
}

// Served is a trace that a server follows. Texts come in blocks, and the last used ones are kept.
const block = 200,
  kept = 64;
export class Served extends Trace {
  constructor(query) {
    super();
    this.query = query;
    this.blocks = new Map();
    this.generation = 0;
  }
  address(what, more) {
    return what + "?" + new URLSearchParams({ ...this.query, ...more });
  }
  // load reads it and follows it; state is that of the sources as the page knows them.
  async load(state) {
    await this.pull();
    this.events = new EventSource(this.address("events", { state }));
    this.events.addEventListener("trace", e => {
      const now = JSON.parse(e.data);
      if (now.n !== this.n || now.generation !== this.generation) this.pull();
    });
    this.events.addEventListener("runs", () => dispatchEvent(new Event("runs")));
    return this;
  }
  // pull takes what the server knows and the page does not; the first part is there when it returns.
  async pull() {
    if (this.pulling) {
      this.again = true;
      return;
    }
    this.pulling = true;
    try {
      this.again = await this.part();
    } finally {
      this.pulling = false;
    }
    this.tell("grown");
    if (this.again && !this.closed) setTimeout(() => this.pull());
  }
  async part() {
    const buf = await bytes(
      this.address("columns", { from: this.n, names: this.names.length, generation: this.generation }),
    );
    const length = new DataView(buf).getUint32(0, true);
    const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buf, 4, length)));
    if (about.generation !== this.generation) {
      this.clear();
      this.blocks.clear();
      this.generation = about.generation;
    }
    this.names = this.names.slice(0, about.named).concat(about.names);
    Object.assign(this, { problem: about.problem, more: about.more, skipped: about.skipped, head: about });
    let at = 4 + length;
    const parts = {};
    for (const [c, type] of Object.entries(columns)) {
      parts[c] = new type(buf.slice(at, at + about.n * type.BYTES_PER_ELEMENT));
      at += about.n * type.BYTES_PER_ELEMENT;
    }
    if (about.from > this.n) return true; // another part came in between
    this.blocks.delete(Math.floor(this.n / block)); // it was not full
    this.add(about.from, about.n, parts);
    return about.more && !about.problem;
  }
  row(i) {
    const k = Math.floor(i / block),
      has = this.blocks.get(k);
    if (has) return has.texts && has.texts[i - k * block];
    const wanted = { texts: null };
    this.blocks.set(k, wanted);
    if (this.blocks.size > kept) this.blocks.delete(this.blocks.keys().next().value);
    json(this.address("rows", { from: k * block + 1, to: (k + 1) * block })).then(
      rows => {
        wanted.texts = rows.map(([, line, raw, cut]) => ({ line, raw, cut }));
        this.tell("texts");
      },
      () => this.blocks.delete(k),
    );
    return undefined;
  }
  async rows(list) {
    const out = [];
    for (let k = 0; k < list.length; k += 1000) {
      const part = Array.from(list.slice(k, k + 1000), i => i + 1);
      for (const [, line, raw, cut] of await json(this.address("rows", { seqs: part.join(",") })))
        out.push({ line, raw, cut });
    }
    return out;
  }
  async find(text, from) {
    return new Set(
      Array.from(new Uint32Array(await bytes(this.address("find", { text, from: from + 1 }))), seq => seq - 1),
    );
  }
  async raw(i) {
    return new Uint8Array(await bytes(this.address("raw", { seq: i + 1 })));
  }
  close() {
    this.closed = true;
    if (this.events) this.events.close();
  }
}

async function answered(address, how) {
  const r = await fetch(address, how);
  if (!r.ok) throw new Error((await r.text()).trim() || r.statusText);
  return r;
}
export const json = async (address, how) => (await answered(address, how)).json();
export const bytes = async address => (await answered(address)).arrayBuffer();
export const text = async address => (await answered(address)).text();
