import { h, verdict, fill, count } from "./dom.js";
import { link, headline, shown, opened } from "./findings.js";

const first = ["error", "fail", "inconclusive", "pass", "skip"];

// requirements are those of the specification, what is broken first.
export function requirements(data) {
  const run = data.runs.map(r => r.run).find(r => r.conformance) || {},
    { requirements: all = [], because = [], verdict: word = "no requirement table" } = run.conformance || {},
    list = h("tbody");
  const keys = new Set(data.cases.map(c => c.key)),
    rank = q => first.indexOf(q.verdict),
    sorted = [...all].sort((a, b) => rank(a) - rank(b));
  const ran = c => keys.has(c.split("#")[0]);
  const show = text =>
    fill(
      list,
      sorted
        .filter(q => [q.id, q.tier, q.level, q.verdict, q.reason, q.tck].join(" ").toLowerCase().includes(text))
        .map(q => {
          const checks = (q.checks || []).filter(ran),
            rest = (q.checks || []).length - checks.length,
            judges = [
              ...checks.map(c => h("a", { href: link(c.split("#")[0]) }, c)),
              ...(q.rules || []),
              rest && count(rest, "check") + " not in this run",
            ].filter(Boolean);
          return h(
            "tr",
            {},
            h("td", {}, verdict(q.verdict)),
            h("td", {}, q.id),
            h("td", { class: "wide" }, q.tier.toLowerCase()),
            h("td", { class: "wide" }, q.level),
            h("td", { class: "wide right" }, q.evidence),
            h(
              "td",
              {},
              q.reason && h("div", {}, q.reason),
              h(
                "div",
                { class: "dim" },
                judges.map((by, k) => [k ? ", " : "", by]),
              ),
            ),
          );
        }),
    );
  show("");
  return [
    h("h1", {}, word, because.length > 0 && ": " + because.join(", ")),
    h(
      "p",
      { class: "dim" },
      first
        .map(v => [all.filter(q => q.verdict === v).length, v])
        .filter(([n]) => n)
        .map(([n, v]) => n + " " + v)
        .join(", "),
    ),
    h(
      "div",
      { class: "tools" },
      h("input", {
        type: "search",
        id: "search",
        placeholder: "search requirements",
        "aria-label": "search requirements",
        oninput: e => show(e.target.value.toLowerCase()),
      }),
    ),
    h(
      "table",
      { class: "required" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["verdict", "requirement"].map(t => h("th", {}, t)),
          ["tier", "level", "evidence"].map(t => h("th", { class: "wide" }, t)),
          h("th", {}, "judged by"),
        ),
      ),
      list,
    ),
  ];
}

// covered says how much of a scenario was tried.
function covered(s, name) {
  const all = (s.pairs_of || {})[name],
    tried = new Set(s.cells.filter(c => c.scenario === name && c.state).map(c => c.state + "\n" + c.action));
  return all && h("div", { class: "dim" }, `${tried.size} of ${all} pairs of situation and action`);
}

// Sessions that were drawn have a map of pairs, whichever of them covered one.
const drawn = "drawn session";
export const isExplored = s => Boolean((s.pairs_of || {})[drawn]);

// pairs is the map of a scenario, or of drawn sessions: a row for each situation, with what was done there.
function pairs(s, to, all) {
  const untried = (s.untried || []).map(p => p.split(": ")),
    rows = (s.points || [])
      .map(point => [
        point,
        all.filter(c => c.point === point),
        untried.filter(([at]) => at === point).map(([, ...rest]) => rest.join(": ")),
      ])
      .filter(([, cells, not]) => cells.length || not.length);
  return h(
    "table",
    { class: "map pairs" },
    h(
      "tr",
      {},
      ["where", "covered", untried.length > 0 && "not covered"].map(t => t && h("th", {}, t)),
    ),
    rows.map(([point, cells, not]) =>
      h(
        "tr",
        {},
        h("th", {}, point),
        h(
          "td",
          {},
          cells.map(c => {
            const text = c.action + (c.verdict === "pass" ? "" : ": " + (c.finding || c.verdict));
            return [h("span", { class: "option " + c.verdict }, c.out ? h("a", to(c), text) : text), " "];
          }),
        ),
        untried.length > 0 && h("td", { class: "dim" }, not.join(", ")),
      ),
    ),
  );
}

// Runs with a finding are on this page; the transcripts of the others lie beside it.
export function sweep(data) {
  const run = data.runs.map(r => r.run).find(r => r.sweep) || {},
    s = run.sweep || {},
    cells = s.cells || [],
    keys = new Set(data.cases.map(c => c.key));
  const to = c => {
    const id = c.out.replace(/\/transcript\.jsonl$/, "");
    return keys.has(id)
      ? { href: link(id) }
      : { href: c.out.split("/").map(encodeURIComponent).join("/"), title: "acp-test show " + c.out };
  };
  if (isExplored(s))
    return [
      h("h1", {}, "Explored"),
      h(
        "p",
        { class: "dim" },
        `${count(s.explored, "conversation")}, ${s.inconclusive} inconclusive; ` +
          `${s.pairs_tried} of ${s.pairs} pairs are covered`,
      ),
      clusters(run),
      h("h2", {}, "Pairs"),
      pairs(s, to, cells),
      repros(s),
    ];
  return [
    h("h1", {}, "Sweep"),
    h(
      "div",
      { class: "dim" },
      `${count(s.explored, "schedule")} explored, ${s.pruned} pruned, ${s.inconclusive} inconclusive; ` +
        `${s.pairs_tried} of ${s.pairs} pairs of situation and action`,
    ),
    s.orders &&
      h(
        "div",
        { class: "dim" },
        `${count(s.orders.drawn, "order")} of acts drawn: ${s.orders.both} of ${s.orders.orders} pairs of acts ` +
          `in both orders, ${count(s.orders.pairs, "pair")} of state and act`,
      ),
    [...new Set(cells.map(c => c.scenario))].map(name => [
      h("h2", {}, name),
      covered(s, name),
      pairs(
        s,
        to,
        cells.filter(c => c.scenario === name),
      ),
    ]),
    repros(s),
  ];
}

// clusters are what was found, the conversations with the same defect together.
function clusters(run) {
  const bad = (run.results || []).filter(r => headline(r));
  return (
    bad.length > 0 && [
      h("h2", {}, "Clusters"),
      h(
        "ul",
        {},
        [...Map.groupBy(bad, r => headline(r).title)].map(([title, list]) =>
          h(
            "li",
            {},
            verdict(shown(list[0])),
            " ",
            h("a", { href: opened({ key: list[0].id, result: list[0] }) }, title),
            [" in ", count(list.length, "conversation")],
          ),
        ),
      ),
    ]
  );
}

const repros = s =>
  (s.repros || []).length > 0 && [
    h("h2", {}, "Repros"),
    h(
      "ul",
      {},
      s.repros.map(f => h("li", {}, h("code", {}, "acp-test run " + f))),
    ),
  ];
