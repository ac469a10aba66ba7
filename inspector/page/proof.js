import { h, fill, button, copy, count, pair, parsed, verdict } from "./dom.js";
import { spanKinds } from "./spans.js";
import { causeOf, toCause } from "./findings.js";

// The proof is what shows a problem, beside the entries that it is about.

// words makes links of the entries that a text names.
export const words = (text, link) =>
  (text || "").split(/(#\d+\b)/).map((part, k) => (k % 2 ? h("a", { href: link(part.slice(1) - 1) }, part) : part));

// cited is a sentence of a specification as a link to where it stands.
const sources = [
  [/^(docs\/spec\/[\w./-]+\.mdx?)#([\w.-]*)/, "ag-ui-protocol/ag-ui"],
  [/^((?:docs|schema)\/[\w./-]+\.(?:mdx?|json))#([\w.$/-]*)/, "agentclientprotocol/agent-client-protocol"],
];
export function cited(citation) {
  for (const [shape, repository] of sources) {
    const m = shape.exec(citation || "");
    if (!m) continue;
    const text = citation.slice(m[0].length).trim(),
      href = `https://github.com/${repository}/blob/main/${m[1]}${m[1].endsWith("json") ? "" : "#" + m[2]}`;
    return h(
      "blockquote",
      {},
      text.replace(/^"|"$/g, ""),
      " ",
      h("a", { class: "cite", href, target: "_blank", rel: "noreferrer" }, `${m[1]}#${m[2]}`),
    );
  }
  return citation ? h("blockquote", {}, citation) : null;
}

// told says in a few words what an entry is.
function told(t, i, row) {
  const m = parsed(row.raw) || {},
    source = t.name("source", i),
    method = t.name("method", i),
    label = t.name("label", i) || t.name("kind", i);
  switch (t.name("kind", i)) {
    case "response": {
      const r = m.result || {},
        outcome = r.outcome && (r.outcome.optionId || r.outcome.outcome);
      const what = m.error ? "error " + m.error.code : r.stopReason || outcome;
      return `the ${source} answers ${method}${what ? " with " + what : ""}`;
    }
    case "request":
      return `the ${source} sends ${method}` + (t.answer(i) ? "" : ", which nothing answered,");
    case "notification":
      return `the ${source} sends ${label}`;
    case "written":
      return `${method} is written`;
  }
  return label;
}

// steps are what a problem is proved by, in order: its entries, and what held model or user in between.
async function steps(t, spans, p) {
  const list = p.entries.filter(seq => seq <= t.n).map(seq => seq - 1),
    from = Math.min(...list),
    to = Math.max(...list),
    all = new Map();
  if (!list.length) return [];
  const few = [...new Set(list)].sort((a, b) => a - b).slice(0, 12),
    rows = await t.rows(few);
  few.forEach((i, k) => all.set(i, [told(t, i, rows[k]), i]));
  spans.within(from, to, s => {
    const kind = spanKinds[spans.kind[s]],
      a = spans.from[s],
      open = spans.isOpen(s);
    if (all.size > 20 || !["gate", "permission"].includes(kind)) return;
    if (kind === "permission" && (all.has(a) || spans.to[s] <= from)) return;
    const end = open ? " to the end" : [" until ", spans.to[s]];
    all.set(a, [kind === "gate" ? "the model is held at gate" : "the user is asked", a, end]);
  });
  const gates = [...all.values()].filter(step => step[2] && t.name("kind", step[1]) === "gate"),
    named = await t.rows(gates.map(step => step[1]));
  gates.forEach((step, k) => {
    step[0] += " " + ((parsed(named[k].raw) || {}).gate || "");
  });
  return [...all.values()].sort((x, y) => x[1] - y[1]);
}

export class Proof {
  constructor({ link, c, run, shortId, same }) {
    Object.assign(this, { link, c, run, shortId, same, found: [], at: 0 });
    this.element = h("section", { id: "problems", "aria-label": "findings" });
  }
  // ready is told of the trace once it is there.
  ready(trace, spans) {
    if (this.known === trace.n || !this.found.length) return;
    Object.assign(this, { trace, spans, known: trace.n });
    this.show(this.found, this.at);
  }
  // show shows the problems of a transcript, one of them in full.
  show(found, at = 0) {
    Object.assign(this, { found, at: Math.max(0, Math.min(at, found.length - 1)) });
    const r = this.c.result || {},
      checks = r.checks || [];
    fill(
      this.element,
      found.length > 0 && this.whole(found[this.at]),
      found.length > 1 &&
        h(
          "details",
          { class: "others", open: found.length < 8 },
          h("summary", {}, count(found.length, "finding")),
          h(
            "ol",
            {},
            found.map((p, k) =>
              h(
                "li",
                {},
                button([verdict(p.cls), " ", p.title], () => this.choose(k), {
                  class: "plain",
                  "aria-pressed": k === this.at,
                }),
              ),
            ),
          ),
        ),
      checks.length > 0 &&
        h(
          "details",
          { open: !found.length },
          h("summary", {}, count(checks.length, "check")),
          h(
            "table",
            {},
            checks.map(c =>
              h(
                "tr",
                {},
                h("td", {}, verdict(c.known ? "known" : c.verdict)),
                h("td", {}, c.slug, c.not_reached && h("div", { class: "dim" }, "not reached")),
                h("td", {}, c.title, h("div", { class: "dim" }, (c.requirements || []).join(" "))),
              ),
            ),
          ),
        ),
      (r.notes || []).length > 0 &&
        h(
          "ul",
          {},
          r.notes.map(n => h("li", {}, n)),
        ),
    );
  }
  choose(k) {
    const p = this.found[k],
      seq = p.entries.at(-1) || p.stood;
    this.show(this.found, k);
    if (seq) location.hash = this.link(seq - 1);
  }
  // turn shows the problem that an entry belongs to, if it does not belong to the one that is shown.
  turn(i) {
    const own = p => p.entries.includes(i + 1) || p.stood === i + 1;
    if (i < 0 || !this.found.length || own(this.found[this.at])) return;
    const k = this.found.findIndex(own);
    if (k >= 0) this.show(this.found, k);
  }
  whole(p) {
    const r = this.c.result || {},
      cause = causeOf(this.run, r, p),
      proof = h("p", { class: "proof" });
    this.prove(p, proof);
    const others = cause && cause.scenarios.length - 1;
    return h(
      "article",
      { class: "problem " + p.cls },
      h("h2", {}, verdict(p.cls), " ", p.title),
      p.id && h("p", { class: "mono dim" }, this.shortId(p.id)),
      proof,
      p.detail && h("p", { class: "proof" }, words(p.detail, this.link)),
      h(
        "dl",
        {},
        ...pair("expected", p.expected),
        p.got ? [h("dt", {}, "got"), h("dd", {}, words(p.got.replace(/^(#\d+) (-->|<--) /, "$1 "), this.link))] : null,
        p.reason && p.reason !== p.title ? [h("dt", {}, "because"), h("dd", {}, words(p.reason, this.link))] : null,
        h("dt", {}, "known"),
        h("dd", {}, p.known ? "yes, it is in the list of known failures" : "no"),
      ),
      cited(p.citation),
      others > 0 &&
        h(
          "p",
          {},
          h(
            "a",
            { class: "same", href: toCause(cause), onclick: e => this.same(e, cause) },
            `the same in ${count(others, "other scenario")}`,
          ),
        ),
      r.rerun &&
        h(
          "p",
          { class: "again" },
          h("code", {}, r.rerun),
          " ",
          button("copy", () => copy(r.rerun, "the command")),
        ),
      h(
        "details",
        {},
        h("summary", {}, "where, and how it was checked"),
        h(
          "dl",
          {},
          ...pair("requirement", [p.requirements.join(" "), p.statement].filter(Boolean).join("  ")),
          ...pair("check", (p.checks || []).join(" ")),
          p.parts.flatMap(([label, text]) => pair(label, text)),
        ),
      ),
      p.below && p.below(),
    );
  }
  // prove writes the proof as a sentence, once the trace is there.
  async prove(p, into) {
    if (!this.trace || !p.entries.length) return;
    const list = await steps(this.trace, this.spans, p),
      go = i => h("a", { href: this.link(i) }, "#" + (i + 1));
    fill(
      into,
      list.map(([text, i, end], k) => [
        k ? "; " : "",
        k ? text : text.slice(0, 1).toUpperCase() + text.slice(1),
        end ? " since " : " at ",
        go(i),
        Array.isArray(end) ? [end[0], go(end[1])] : end,
      ]),
      list.length > 0 && ".",
    );
  }
}
