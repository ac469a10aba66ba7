import { h, fill, button, count } from "./dom.js";

// align puts the lines of two texts beside each other: pairs of indexes, -1 where one has no such line.
export function align(a, b) {
  let start = 0,
    end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const n = a.length - start - end,
    m = b.length - start - end,
    pairs = [];
  for (let i = 0; i < start; i++) pairs.push([i, i]);
  if (n * m > 9e6) {
    // too long to align: one after the other
    for (let i = 0; i < n; i++) pairs.push([start + i, -1]);
    for (let j = 0; j < m; j++) pairs.push([-1, start + j]);
  } else {
    const w = m + 1,
      longest = new Uint16Array((n + 1) * w);
    for (let i = n - 1; i >= 0; i--)
      for (let j = m - 1; j >= 0; j--) {
        longest[i * w + j] =
          a[start + i] === b[start + j]
            ? longest[(i + 1) * w + j + 1] + 1
            : Math.max(longest[(i + 1) * w + j], longest[i * w + j + 1]);
      }
    for (let i = 0, j = 0; i < n || j < m;) {
      if (i < n && j < m && a[start + i] === b[start + j]) pairs.push([start + i++, start + j++]);
      else if (j < m && (i === n || longest[i * w + j + 1] > longest[(i + 1) * w + j])) pairs.push([-1, start + j++]);
      else pairs.push([start + i++, -1]);
    }
  }
  for (let k = end; k > 0; k--) pairs.push([a.length - k, b.length - k]);
  return pairs;
}

const lines = text => text.replace(/\n$/, "").split("\n");

// canonical is the text of a transcript in which what may differ from run to run is masked.
async function canonical(c, live) {
  if (live) return c.text("canonical");
  await c.trace();
  return c.text("rendered");
}

// before is what a scenario said in the run that --against named, as another transcript to compare with.
const before = (c, run) =>
  run.against &&
  c.result &&
  (c.result.artifacts || {}).rendered && {
    key: "before",
    title: "before: " + run.against.run,
    trace: () => c.trace(),
    text: async () => await c.text(c.result.artifacts.before ? "before" : "rendered"),
  };

// partners are the transcripts to compare with, in groups, those first that make sense: what the scenario said before,
// then the same scenario of another agent, version or round.
function partners(here, run, others) {
  const earlier = before(here, run),
    id = here.result && here.result.id,
    same = others.filter(o => o !== here.last && id && o.result && o.result.id === id),
    near = [earlier, here.last].filter(Boolean);
  return {
    earlier,
    // What changed is what one looks for; a golden that differs says it by itself.
    first: earlier && here.result.artifacts.before ? earlier : here.last || (goldenOf(here) ? null : same[0]),
    groups: [
      ["before", near],
      ["the same scenario", same],
      ["other transcripts", others.filter(o => !near.includes(o) && !same.includes(o))],
    ].filter(([, list]) => list.length),
  };
}
const goldenOf = c => c.result && c.result.golden && c.result.golden.diff;

// Compare shows the canonical texts of two transcripts beside each other.
export function compare({ here, run, others, live, chosen, choose }) {
  const { earlier, first, groups } = partners(here, run || {}, others);
  if (earlier) others = [earlier, ...others];
  if (!chosen) chosen = first ? first.key : goldenOf(here) ? "golden" : "";
  const body = h("div", {}),
    name = h(
      "select",
      { "aria-label": "compare with", onchange: () => choose(name.value) },
      h("option", { value: "" }, "compare with …"),
      goldenOf(here) && h("option", { value: "golden", selected: chosen === "golden" }, "the golden"),
      groups.map(([label, list]) =>
        h(
          "optgroup",
          { label },
          list.map(o => h("option", { value: o.key, selected: o.key === chosen }, o.title || o.key)),
        ),
      ),
    );
  const element = h(
    "section",
    { class: "compare", "aria-label": "compare", tabindex: 0 },
    h(
      "div",
      { class: "bar" },
      name,
      button("next difference", () => next()),
    ),
    body,
  );
  const differences = [];
  let at = -1;
  const next = () => {
    if (!differences.length) return;
    at = (at + 1) % differences.length;
    differences[at].scrollIntoView({ block: "center" });
    differences[at].focus();
  };
  const golden = goldenOf(here);
  if (!chosen || chosen === "golden") {
    fill(
      body,
      h("p", { class: "dim" }, "Ids, paths and times do not count, nor does an order that the protocol leaves open."),
      golden
        ? [
            h("h3", {}, "Run and golden"),
            h(
              "pre",
              { class: "diff", tabindex: 0 },
              lines(golden).map(l =>
                h("span", { class: l[0] === "+" ? "add" : l[0] === "-" && l !== "-want +got" ? "del" : "" }, l || " "),
              ),
            ),
          ]
        : null,
    );
    return element;
  }
  const other = others.find(o => o.key === chosen);
  if (!other) {
    fill(body, h("p", {}, `There is no transcript ${chosen}.`));
    return element;
  }
  Promise.all(
    other === earlier
      ? [canonical(other, live), here.text("rendered")]
      : [canonical(here, live), canonical(other, live)],
  ).then(
    ([x, y]) => {
      const a = lines(x),
        b = lines(y),
        rows = align(a, b),
        grid = h(
          "div",
          { class: "beside" },
          h("b", {}, other === earlier ? earlier.title : here.key),
          h("b", {}, other === earlier ? "now" : other.key),
        );
      let run = false,
        some = 0;
      for (const [i, j] of rows) {
        const same = i >= 0 && j >= 0;
        const l = h("code", { class: same ? "" : i >= 0 ? "del" : "gap" }, i >= 0 ? a[i] : ""),
          r = h("code", { class: same ? "" : j >= 0 ? "add" : "gap" }, j >= 0 ? b[j] : "");
        if (!same) {
          some++;
          if (!run) {
            l.tabIndex = -1;
            differences.push(l);
          }
        }
        run = !same;
        grid.append(l, r);
      }
      fill(
        body,
        h(
          "p",
          { class: "lead" },
          some
            ? `${count(differences.length, "place differs", "places differ")}, in ${count(some, "line")}.`
            : "They say the same.",
        ),
        grid,
      );
      if (differences.length) {
        differences[0].classList.add("first");
        next();
      }
    },
    e => fill(body, h("p", { class: "error" }, String(e.message || e))),
  );
  return element;
}
