import { h, ms, verdict, pair, diff, fill, count } from "./dom.js";

// outcome is the result of a transcript, or what the map of its sweep says of it.
export const outcome = c => c.result || c.told;
export const shown = r => (!r ? "unjudged" : r.verdict === "fail" && r.known ? "known" : r.verdict);
export const link = (key, view, seq, more) => {
  const q = new URLSearchParams(Object.entries(more || {}).filter(([, v]) => v)).toString();
  return "#/s/" + encodeURIComponent(key) + (view ? "/" + view : "") + (seq ? "/" + seq : "") + (q ? "?" + q : "");
};

// instead says what a failure expected and what came.
const instead = f =>
  "expected " + (f.expected || []).join(" or ") + ", got " + (f.observed || "nothing").split("\n")[0];

// problems are what went wrong in a result, one object for each: class, id, title, entries and parts.
export function problems(r) {
  const all = [];
  if (!r) return all;
  const failed = (f, more) => ({
    parts: [
      ...pair("requirement", [(f.requirement || []).join(" "), f.statement].filter(Boolean).join("  ")),
      ...pair("expected", (f.expected || []).join("\nor ")),
      ...pair("observed", f.observed),
      ...pair("because", f.reason),
      ...pair("timer", f.timer),
      ...pair("where", f.where),
      ...pair("agent", f.process),
      ...pair("what to do", f.advice),
    ],
    below: [
      f.diff && diff(f.diff),
      f.tail && h("pre", { tabindex: 0 }, f.tail.join("\n")),
      f.stderr && h("details", {}, h("summary", {}, "stderr"), h("pre", { tabindex: 0 }, f.stderr)),
    ],
    entries: f.entries || [],
    ...more,
  });
  if (r.failure)
    all.push(
      failed(r.failure, {
        cls: r.known ? "known" : r.failure_class,
        title: r.reason || r.failure.reason || instead(r.failure),
      }),
    );
  for (const c of r.checks || []) {
    if (c.verdict === "pass") continue;
    const head = {
      cls: c.known ? "known" : c.verdict,
      id: c.id,
      title:
        (c.title || (c.failure && instead(c.failure)) || "") +
        (c.not_reached ? " (not reached: an earlier line failed)" : ""),
      late: c.not_reached ? 1 : 0,
    };
    all.push(
      c.failure
        ? failed(c.failure, head)
        : {
            ...head,
            entries: [],
            parts: [...pair("requirement", (c.requirements || []).join(" ")), ...pair("because", c.reason)],
            below: [],
          },
    );
  }
  for (const f of r.findings || [])
    all.push({
      cls: f.known ? "known" : f.class,
      id: f.rule,
      title: f.message + (f.count > 1 ? " (" + f.count + " places)" : ""),
      entries: f.entries || [],
      citation: f.citation,
      parts: [
        ...pair("requirement", (f.requirements || []).join(" ")),
        ...pair("citation", f.citation),
        ...pair("detail", f.detail),
        ...pair("session", f.session),
      ],
      below: [f.tail && h("pre", { tabindex: 0 }, f.tail.join("\n"))],
    });
  if (r.golden && r.golden.diff)
    all.push({
      cls: r.golden.known ? "known" : r.golden.state === "differs" ? "fail" : "info",
      id: "golden",
      title: "the messages differ from the golden " + (r.golden.path || ""),
      entries: [],
      parts: [],
      below: [diff(r.golden.diff)],
    });
  if (!all.length && r.reason) all.push({ cls: r.verdict, title: r.reason, entries: [], parts: [], below: [] });
  const order = ["error", "fail", "inconclusive", "warn", "lint", "skip", "known", "info"];
  return all.sort((a, b) => order.indexOf(a.cls) - order.indexOf(b.cls) || (a.late || 0) - (b.late || 0));
}

// causeOf is the cause of a run that a problem of a scenario has, if the run names one.
export const causeOf = (run, r, p) =>
  ((run && run.causes) || []).find(
    c =>
      r &&
      c.scenarios.includes(r.id) &&
      (c.id && p.id ? c.id === p.id || c.id.startsWith(p.id + " ") : c.title === p.title),
  );
export const toCause = c => "#/?" + new URLSearchParams({ cause: c.id || c.title });

// firstFrame is where to look first: the last entry of the worst problem that has any.
export const firstFrame = found => (found.find(p => p.entries.length) || { entries: [] }).entries.at(-1);

function summary(r) {
  const found = problems(r),
    first = found.find(p => p.cls === shown(r)) || (r && r.verdict !== "pass" && found[0]);
  return first ? [first.id && h("b", {}, first.id.replace(r.id + "#", "") + " "), first.title] : "";
}

// Overview is the index: what is wrong, each once, then the scenarios.
export function overview(data, view, navigation) {
  const cases = data.cases.filter(c => !c.hidden),
    byId = new Map(cases.map(c => [c.result && c.result.id, c]));
  const list = h("tbody"),
    size = h("span", { class: "dim", role: "status" }),
    chips = {};
  const kinds = ["error", "fail", "inconclusive", "known", "skip", "pass", "unjudged"].filter(v =>
    cases.some(c => shown(outcome(c)) === v),
  );
  const cause = view.cause && data.runs.flatMap(x => x.run.causes || []).find(c => (c.id || c.title) === view.cause);
  const texts = new Map();
  const haystack = c => {
    if (!texts.has(c))
      texts.set(
        c,
        [
          c.key,
          (outcome(c) || {}).title,
          (outcome(c) || {}).reason,
          shown(outcome(c)),
          ...((c.result && c.result.tags) || []),
          ...problems(outcome(c)).flatMap(p => [p.id, p.title]),
        ]
          .join(" ")
          .toLowerCase(),
      );
    return texts.get(c);
  };
  const to = c => link(c.key, "", firstFrame(problems(c.result)) && "frames/" + firstFrame(problems(c.result)));
  const show = () => {
    const words = view.text.toLowerCase().split(/\s+/).filter(Boolean);
    view.rows = cases.filter(
      c =>
        (!cause || (c.result && cause.scenarios.includes(c.result.id))) &&
        (!view.only || shown(outcome(c)) === view.only) &&
        words.every(w => haystack(c).includes(w)),
    );
    list.replaceChildren(
      ...view.rows.map(c =>
        h(
          "tr",
          {},
          h("td", {}, verdict(shown(outcome(c)))),
          h(
            "td",
            {},
            c.file === null ? c.key : h("a", { href: to(c) }, (outcome(c) || {}).title || c.key),
            (outcome(c) || {}).title &&
              h(
                "div",
                { class: "dim mono" },
                c.key,
                c.last &&
                  c.last.result && [
                    " · ",
                    h("a", { href: link(c.key, "compare") }, "before: " + c.last.result.verdict),
                  ],
              ),
          ),
          h("td", { class: "wide" }, outcome(c) ? summary(outcome(c)) : "no verdict yet"),
          h("td", { class: "right took" }, c.result ? ms(c.result.duration_ns) : ""),
        ),
      ),
    );
    size.textContent = view.rows.length + " of " + cases.length;
    for (const [v, chip] of Object.entries(chips)) chip.setAttribute("aria-pressed", view.only === v);
    view.at = Math.min(view.at, Math.max(view.rows.length - 1, 0));
  };
  const changed = () => {
    view.at = 0;
    show();
    view.remember();
  };
  const search = h("input", {
    type: "search",
    id: "search",
    placeholder: "search sentence, id, rule, text",
    "aria-label": "search scenarios",
    value: view.text,
    oninput: e => {
      view.text = e.target.value;
      changed();
    },
  });
  for (const v of kinds)
    chips[v] = h(
      "button",
      {
        type: "button",
        class: v,
        onclick: () => {
          view.only = view.only === v ? "" : v;
          changed();
        },
      },
      cases.filter(c => shown(outcome(c)) === v).length + " " + v,
    );
  show();
  return [
    navigation("#/"),
    data.runs.map(x => heading(x, data)),
    data.runs.map(x => [causes(x.run, byId), changes(x.run, byId)]),
    cases.length > 0 && [
      h("h2", { id: "list" }, "Scenarios"),
      h("div", { class: "tools" }, search, Object.values(chips), size),
      cause && h("p", {}, "Those with this cause: ", h("b", {}, cause.title), " ", h("a", { href: "#/" }, "show all")),
      h(
        "table",
        { id: "scenarios" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", {}, "verdict"),
            h("th", {}, "scenario"),
            h("th", { class: "wide" }, "what happened"),
            h("th", { class: "right" }, "time"),
          ),
        ),
        list,
      ),
    ],
    !cases.length && h("p", {}, "There is no transcript here yet."),
    data.runs.map(x => rest(x.run)),
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

function causes(run, byId) {
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
          c.citation && h("blockquote", {}, c.citation),
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
            c.scenarios.length > most && h("a", { href: toCause(c) }, `and ${c.scenarios.length - most} more`),
          ),
        ),
      ),
    ),
  ];
}

// waited says for what a scenario waited that did little else.
function waited(r) {
  const w = r.waits || {};
  const most = [
    ["starting", w.start_ns],
    ["at deadlines", w.deadline_ns],
    ["lingering", w.linger_ns],
    ["at the exit", w.exit_ns],
  ].find(([, took]) => 2 * took > r.duration_ns);
  return most ? ` (${ms(most[1])} ${most[0]})` : "";
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

export function requirements(data, navigation) {
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
    navigation("#/requirements"),
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

// Runs with a finding are on this page; the transcripts of the others lie beside it.
export function sweep(data, navigation) {
  const s = (data.runs.map(r => r.run).find(r => r.sweep) || {}).sweep || {},
    cells = s.cells || [],
    keys = new Set(data.cases.map(c => c.key));
  const to = c => {
    const id = c.out.replace(/\/transcript\.jsonl$/, "");
    return keys.has(id)
      ? { href: link(id) }
      : { href: c.out.split("/").map(encodeURIComponent).join("/"), title: "acp-test show " + c.out };
  };
  return [
    navigation("#/sweep"),
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
    (s.repros || []).length > 0 && [
      h("h2", {}, "Repros"),
      h(
        "ul",
        {},
        s.repros.map(f => h("li", {}, h("code", {}, "acp-test run " + f))),
      ),
    ],
  ];
}
