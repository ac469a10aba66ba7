import { h, ms, verdict, diff, count } from "./dom.js";
import { cited } from "./proof.js";
import { link, problems, firstFrame, toCause, waited } from "./findings.js";

// The overview is what a run says as a whole: what is wrong, each cause once, and what is otherwise than before.
export function overview(data, same) {
  const byId = new Map(data.cases.filter(c => !c.hidden).map(c => [c.result && c.result.id, c]));
  return [
    data.runs.map(x => heading(x, data)),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        {},
        data.runs.map(x => causes(x.run, byId, same)),
      ),
      h(
        "div",
        {},
        data.runs.map(x => [changes(x.run, byId), rest(x.run)]),
      ),
    ),
  ];
}

function heading({ name, run, problem }, data) {
  if (problem) return [h("h1", {}, name), h("pre", { class: "error", tabindex: 0 }, problem)];
  if (!run.agent)
    return h("h1", {}, name || "Transcripts", data.live && h("span", { class: "dim" }, " no results yet"));
  return [
    h(
      "h1",
      {},
      [run.agent.title || run.agent.profile, run.agent.version].filter(Boolean).join(" ") || name,
      ": ",
      h("span", { class: run.verdict }, run.verdict),
      run.conformance && [" ", h("span", { class: "dim" }, run.conformance.verdict)],
    ),
    h(
      "div",
      { class: "dim" },
      [
        count(run.results.length, "scenario"),
        ms(run.duration_ns),
        new Date(run.started).toLocaleString(),
        run.tool,
        run.interrupted && "interrupted",
      ]
        .filter(Boolean)
        .join(" · "),
    ),
    run.command && h("div", {}, h("code", {}, run.command)),
  ];
}

function causes(run, byId, same) {
  if (!(run.causes || []).length) return null;
  const most = 3;
  return [
    h("h2", {}, "What is wrong"),
    h(
      "div",
      { id: "causes" },
      run.causes.map(c =>
        h(
          "article",
          { class: "problem " + (c.known ? "known" : c.class) },
          h(
            "div",
            {},
            verdict(c.known ? "known" : c.class),
            " ",
            h("span", { class: "sentence" }, c.title),
            " ",
            c.id && h("span", { class: "mono dim" }, c.id),
          ),
          cited(c.citation),
          h(
            "div",
            { class: "seen" },
            count(c.scenarios.length, "scenario") + ": ",
            c.scenarios.slice(0, most).map(id => {
              const at = byId.get(id),
                found = at && problems(at.result).find(p => p.entries.length && (c.id || "").startsWith(p.id || "\0"));
              const seq = at && ((found || {}).entries || [firstFrame(problems(at.result))]).at(-1);
              return at ? [h("a", { href: link(at.key, "frames", seq) }, id), " "] : id + " ";
            }),
            c.scenarios.length > most &&
              h("a", { href: toCause(c), onclick: e => same(e, c) }, `and ${c.scenarios.length - most} more`),
          ),
        ),
      ),
    ),
  ];
}

// changes says what is otherwise than in the run that --against named.
function changes(run, byId) {
  const since = run.against;
  if (!since) return null;
  const to = (id, text) =>
    byId.has(id)
      ? h(
          "a",
          { href: link(id, "compare", 0, { with: ((byId.get(id).result || {}).artifacts || {}).before && "before" }) },
          text,
        )
      : text;
  const byScenario = Map.groupBy(since.changes || [], c => c.id);
  const one = c =>
    [
      c.what === "verdict" ? "" : c.what === "text" ? "says something else" : c.what,
      c.name,
      c.was || c.is ? (c.was || "none") + " → " + (c.is || "none") : "",
    ]
      .filter(Boolean)
      .join(" ");
  const all = [...byScenario].map(([id, list]) =>
    h(
      "li",
      {},
      to(id, id),
      " ",
      list.map((c, k) => [
        k ? ", " : "",
        c.what === "verdict" ? h("b", { class: c.is }, one(c)) : h("span", { class: "dim" }, one(c)),
      ]),
      list.filter(c => c.diff).map(c => h("details", {}, h("summary", {}, "difference"), diff(c.diff))),
    ),
  );
  const most = 12;
  return [
    h("h2", {}, "Changed since " + since.run),
    !all.length && h("p", {}, "nothing"),
    h("ul", { id: "changes" }, all.slice(0, most)),
    all.length > most && h("details", {}, h("summary", {}, `${all.length - most} more`), h("ul", {}, all.slice(most))),
  ];
}

function rest(run) {
  const slow = [...(run.results || [])].sort((a, b) => b.duration_ns - a.duration_ns).slice(0, 5);
  return [
    (run.flaky || []).length > 0 && [
      h("h2", {}, "Flaky"),
      h(
        "ul",
        {},
        run.flaky.map(f => h("li", {}, f.id + " passed " + f.passed + " of " + f.of + " times")),
      ),
    ],
    (run.differences || []).map(d => [
      h("h2", {}, "Differs: ", d.id),
      h(
        "p",
        {},
        `round ${d.rounds[0]} (${d.verdicts[0]}) and round ${d.rounds[1]} (${d.verdicts[1]}): ${d.explanation}`,
      ),
      d.how && h("p", { class: "dim" }, `round ${d.rounds[1]}: ` + d.how.join(", ")),
      h(
        "table",
        { class: "map beside-table" },
        h(
          "tr",
          {},
          d.rounds.map(n => h("th", {}, h("a", { href: link(d.id + "~" + n) }, "round " + n))),
        ),
        (d.rows || []).map(r =>
          h(
            "tr",
            { class: r[0] === r[1] ? "dim" : "" },
            r.map(t => h("td", {}, t)),
          ),
        ),
      ),
    ]),
    slow.length > 1 && [
      h("h2", {}, "Slowest"),
      h(
        "ul",
        {},
        slow.map(r =>
          h(
            "li",
            {},
            h("a", { href: link(r.id + (r.repeat ? "~" + r.repeat : "")) }, r.title || r.id),
            " ",
            ms(r.duration_ns),
            waited(r),
          ),
        ),
      ),
    ],
    (run.stale || []).length > 0 && [
      h("h2", {}, "Stale"),
      h(
        "ul",
        {},
        run.stale.map(s => h("li", {}, s)),
      ),
    ],
    (run.notes || []).length > 0 && [
      h("h2", {}, "Notes"),
      h(
        "ul",
        {},
        run.notes.map(s => h("li", {}, s)),
      ),
    ],
  ];
}
