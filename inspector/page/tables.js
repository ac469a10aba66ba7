import { h, verdict, fill, count, visible } from "./dom.js";
import { link, headline, shown, opened } from "./findings.js";

export function requirements(data) {
  const run = data.runs.map(r => r.run).find(r => r.conformance) || {},
    all = (run.conformance || {}).requirements || [],
    list = h("tbody");
  const keys = new Set(data.cases.map(c => c.key));
  const show = text =>
    fill(
      list,
      all
        .filter(q => [q.id, q.tier, q.level, q.verdict, q.reason, q.tck].join(" ").toLowerCase().includes(text))
        .map(q =>
          h(
            "tr",
            {},
            h("td", {}, verdict(q.verdict)),
            h("td", {}, q.id),
            h("td", {}, q.tier),
            h("td", { class: "wide" }, q.level),
            h("td", { class: "right" }, q.evidence),
            h(
              "td",
              {},
              q.reason,
              (q.checks || []).map(c => [
                " ",
                keys.has(c.split("#")[0]) ? h("a", { href: link(c.split("#")[0]) }, c) : c,
              ]),
              " ",
              (q.rules || []).join(" "),
            ),
          ),
        ),
    );
  show("");
  return [
    h("h1", {}, (run.conformance || {}).verdict || "no requirement table"),
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
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["verdict", "id", "tier"].map(t => h("th", {}, t)),
          h("th", { class: "wide" }, "level"),
          h("th", {}, "evidence"),
          h("th", {}, "why"),
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

// explored is that map: a row for each state of a turn or part of a session, with what was done there.
function explored(s, to) {
  const untried = (s.untried || []).map(p => p.split(": ")),
    rows = (s.points || []).map(point => [
      point,
      s.cells.filter(c => c.point === point),
      untried.filter(([at]) => at === point).map(([, ...rest]) => rest.join(": ")),
    ]);
  return h(
    "table",
    { class: "map explored" },
    h(
      "tr",
      {},
      ["where", "covered", "not covered"].map(t => h("th", {}, t)),
    ),
    rows.map(([point, cells, not]) =>
      h(
        "tr",
        {},
        h("th", {}, point),
        h(
          "td",
          {},
          cells.map(c => [
            h(
              "span",
              { class: "option " + c.verdict, title: visible(c.finding || c.verdict) },
              c.out ? h("a", to(c), c.action) : c.action,
            ),
            " ",
          ]),
        ),
        h("td", { class: "dim" }, not.join(", ")),
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
      explored(s, to),
      repros(s),
    ];
  return [
    h("h1", {}, "Sweep"),
    h(
      "div",
      { class: "dim" },
      `${s.explored} schedules explored, ${s.pruned} pruned, ${s.inconclusive} inconclusive; ` +
        `${s.pairs_tried} of ${s.pairs} pairs of situation and action`,
    ),
    s.orders &&
      h(
        "div",
        { class: "dim" },
        `${s.orders.drawn} orders of acts drawn: ${s.orders.both} of ${s.orders.orders} pairs of acts in both orders` +
          `, ${s.orders.pairs} pairs of state and act`,
      ),
    [...new Set(cells.map(c => c.scenario))].map(name => [
      h("h2", {}, name),
      covered(s, name),
      h(
        "table",
        { class: "map" },
        h(
          "tr",
          {},
          h("th", {}, ""),
          (s.actions || []).map(a => h("th", {}, a)),
        ),
        (s.points || [])
          .filter(p => cells.some(c => c.scenario === name && c.point === p))
          .map(p =>
            h(
              "tr",
              {},
              h("th", {}, p),
              (s.actions || []).map(a => {
                const here = cells.filter(c => c.scenario === name && c.point === p && c.action === a);
                return h(
                  "td",
                  { class: "cell" },
                  here.map(c =>
                    h(
                      "div",
                      { class: c.verdict },
                      c.out ? h("a", to(c), c.finding || c.verdict) : c.finding || c.verdict,
                    ),
                  ),
                );
              }),
            ),
          ),
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
