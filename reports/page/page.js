"use strict";
(() => {
  const run = JSON.parse(document.getElementById("run").textContent);
  const app = document.getElementById("app");
  const results = run.results || [];
  const key = r => r.id + (r.repeat ? "~" + r.repeat : "");
  const byKey = new Map(results.map((r, i) => [key(r), i]));

  // h makes an element. Text goes in as text: nothing from a run is markup.
  function h(tag, attrs, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attrs || {})) {
      if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
      else if (v !== undefined && v !== null && v !== false) e.setAttribute(k, v === true ? "" : v);
    }
    for (const c of children.flat()) if (c || c === 0) e.append(c instanceof Node ? c : String(c));
    return e;
  }
  const ms = ns => ns >= 1e9 ? (ns / 1e9).toFixed(1) + " s" : Math.round((ns || 0) / 1e6) + " ms";
  const shown = r => r.verdict === "fail" && r.known ? "known" : r.verdict;
  const link = r => "#/s/" + encodeURIComponent(key(r));
  const verdict = v => h("span", { class: "v " + v }, v);
  const pair = (label, text) => text && (!Array.isArray(text) || text.length) ?
    [h("dt", {}, label), h("dd", {}, Array.isArray(text) ? text.join("\n") : text)] : [];

  function diff(text) {
    return h("pre", { class: "diff" }, text.replace(/\n$/, "").split("\n").map(l =>
      h("span", { class: l[0] === "+" ? "add" : l[0] === "-" && l !== "-want +got" ? "del" : "" }, l || " ")));
  }

  // What went wrong, one object for each: class, id, title, entries and parts.
  function problems(r) {
    const all = [];
    const failed = (f, more) => ({
      parts: [...pair("requirement", [(f.requirement || []).join(" "), f.statement].filter(Boolean).join("  ")),
        ...pair("expected", (f.expected || []).join("\nor ")), ...pair("observed", f.observed), ...pair("because", f.reason),
        ...pair("timer", f.timer), ...pair("where", f.where), ...pair("agent", f.process), ...pair("what to do", f.advice)],
      below: [f.diff && diff(f.diff), f.tail && h("pre", {}, f.tail.join("\n")), f.stderr && h("details", {}, h("summary", {}, "stderr"), h("pre", {}, f.stderr))],
      entries: f.entries || [], ...more,
    });
    if (r.failure) all.push(failed(r.failure, { cls: r.known ? "known" : r.verdict, title: r.reason || r.failure.reason || "expected " + (r.failure.expected || []).join(" or ") + ", got " + (r.failure.observed || "nothing").split("\n")[0] }));
    for (const c of r.checks || []) {
      if (c.verdict === "pass") continue;
      const head = { cls: c.known ? "known" : c.verdict, id: c.id, title: (c.title || "") + (c.not_reached ? " (not reached: an earlier line failed)" : ""), late: c.not_reached ? 1 : 0 };
      all.push(c.failure ? failed(c.failure, head) : { ...head, entries: [], parts: [...pair("requirement", (c.requirements || []).join(" ")), ...pair("because", c.reason)], below: [] });
    }
    for (const f of r.findings || []) all.push({
      cls: f.known ? "known" : f.class, id: f.rule, title: f.message + (f.count > 1 ? " (" + f.count + " places)" : ""), entries: f.entries || [],
      parts: [...pair("requirement", (f.requirements || []).join(" ")), ...pair("citation", f.citation), ...pair("detail", f.detail), ...pair("session", f.session)],
      below: [f.tail && h("pre", {}, f.tail.join("\n"))],
    });
    if (r.golden && r.golden.diff) all.push({ cls: r.golden.known ? "known" : r.golden.state === "differs" ? "fail" : "info", id: "golden", title: r.golden.state + " " + (r.golden.path || ""), entries: [], parts: [], below: [diff(r.golden.diff)] });
    if (!all.length && r.reason) all.push({ cls: r.verdict, title: r.reason, entries: [], parts: [], below: [] });
    const order = ["error", "fail", "inconclusive", "warn", "lint", "skip", "known", "info"];
    return all.sort((a, b) => order.indexOf(a.cls) - order.indexOf(b.cls) || (a.late || 0) - (b.late || 0));
  }

  // unpack gives what is embedded of a scenario, once.
  const unpacked = new Map();
  async function unpack(i) {
    if (!unpacked.has(i)) {
      const bytes = Uint8Array.from(atob(document.getElementById("t" + i).textContent), c => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      unpacked.set(i, JSON.parse(await new Response(stream).text()));
    }
    return unpacked.get(i);
  }

  function navigation(here) {
    const to = (hash, text) => h("a", { href: hash, class: here === hash ? "here" : "" }, text);
    return h("nav", {}, to("#/", "Scenarios"), run.conformance && to("#/requirements", "Requirements"), run.sweep && to("#/sweep", "Sweep"),
      h("span", { class: "dim wide" }, "keys: / search, j k move, Enter open, n next failure, u up"));
  }

  // The overview.
  const view = { text: "", only: "", at: 0, rows: [] };
  function overview() {
    const list = h("tbody");
    const count = h("span", { class: "dim" });
    const chips = {};
    const kinds = ["error", "fail", "inconclusive", "known", "skip", "pass"].filter(v => results.some(r => shown(r) === v));
    const fill = () => {
      const words = view.text.toLowerCase().split(/\s+/).filter(Boolean);
      view.rows = results.filter(r => (!view.only || shown(r) === view.only) && words.every(w => haystack(r).includes(w)));
      list.replaceChildren(...view.rows.map(r => h("tr", {}, h("td", {}, verdict(shown(r))),
        h("td", {}, h("a", { href: link(r) }, key(r)), r.title && h("div", { class: "dim" }, r.title)),
        h("td", { class: "wide" }, summary(r)), h("td", { class: "right" }, ms(r.duration_ns)))));
      count.textContent = view.rows.length + " of " + results.length;
      for (const [v, chip] of Object.entries(chips)) chip.setAttribute("aria-pressed", view.only === v);
      view.at = Math.min(view.at, Math.max(view.rows.length - 1, 0));
    };
    const search = h("input", { type: "search", id: "search", placeholder: "search id, title, rule, text", "aria-label": "search scenarios", value: view.text, oninput: e => { view.text = e.target.value; view.at = 0; fill(); } });
    for (const v of kinds) chips[v] = h("button", { class: v, onclick: () => { view.only = view.only === v ? "" : v; fill(); } }, results.filter(r => shown(r) === v).length + " " + v);
    const flaky = run.flaky || [];
    const since = run.against;
    const slow = [...results].sort((a, b) => b.duration_ns - a.duration_ns).slice(0, 5);
    fill();
    return [navigation("#/"),
      h("h1", {}, [run.agent.title || run.agent.profile, run.agent.version].filter(Boolean).join(" "), ": ", h("span", { class: run.verdict }, run.verdict),
        run.conformance && [" ", h("span", { class: "dim" }, run.conformance.verdict)]),
      h("div", { class: "dim" }, [results.length + " scenarios", ms(run.duration_ns), new Date(run.started).toLocaleString(), run.tool, run.interrupted && "interrupted"].filter(Boolean).join(" · ")),
      h("div", {}, h("code", {}, run.command)),
      (run.causes || []).length > 0 && [h("h2", {}, "What is wrong"), h("table", { id: "causes" }, h("thead", {}, h("tr", {}, h("th", {}, "class"), h("th", { class: "wide" }, "cause"), h("th", {}, "seen in"))), h("tbody", {}, run.causes.map(cause))), h("h2", {}, "Scenarios")],
      h("div", { class: "tools" }, search, Object.values(chips), count),
      h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "verdict"), h("th", {}, "scenario"), h("th", { class: "wide" }, "what happened"), h("th", { class: "right" }, "time"))), list),
      flaky.length > 0 && [h("h2", {}, "Flaky"), h("ul", {}, flaky.map(f => h("li", {}, f.id + " passed " + f.passed + " of " + f.of + " times")))],
      (run.differences || []).map(d => [h("h2", {}, "Differs: ", d.id), h("p", {}, `round ${d.rounds[0]} (${d.verdicts[0]}) and round ${d.rounds[1]} (${d.verdicts[1]}): ${d.explanation}`),
        d.how && h("p", { class: "dim" }, `round ${d.rounds[1]}: ` + d.how.join(", ")),
        h("table", { class: "map beside" }, h("tr", {}, d.rounds.map(n => h("th", {}, h("a", { href: "#/s/" + encodeURIComponent(d.id + "~" + n) }, "round " + n)))),
          (d.rows || []).map(r => h("tr", { class: r[0] === r[1] ? "dim" : "" }, r.map(t => h("td", {}, t)))))]).flat(),
      since && [h("h2", {}, "Changed since " + since.run), !since.changes && h("p", {}, "nothing"), h("ul", { id: "changes" }, (since.changes || []).map(c => h("li", {}, h("a", { href: "#/s/" + encodeURIComponent(c.id) }, c.id), " ",
        [c.what, c.name, c.was || c.is ? (c.was || "not there") + " → " + (c.is || "not there") : "changed"].filter(Boolean).join(" "), c.diff && diff(c.diff))))],
      h("h2", {}, "Slowest"), h("ul", {}, slow.map(r => h("li", {}, h("a", { href: link(r) }, key(r)), " ", ms(r.duration_ns)))),
      (run.stale || []).length > 0 && [h("h2", {}, "Stale"), h("ul", {}, run.stale.map(s => h("li", {}, s)))],
      (run.notes || []).length > 0 && [h("h2", {}, "Notes"), h("ul", {}, run.notes.map(s => h("li", {}, s)))]].flat(3);
  }
  function cause(c) {
    const most = 3, links = c.scenarios.slice(0, most).map(id => [h("a", { href: link(results.find(r => r.id === id)) }, id), " "]);
    return h("tr", {}, h("td", {}, verdict(c.known ? "known" : c.class)), h("td", { class: "wide" }, c.id && h("b", {}, c.id + " "), c.title, c.citation && h("div", { class: "dim" }, c.citation)),
      h("td", {}, links, c.scenarios.length > most && "and " + (c.scenarios.length - most) + " more"));
  }
  const texts = new Map();
  function haystack(r) {
    if (!texts.has(r)) texts.set(r, [key(r), r.title, r.reason, shown(r), ...(r.tags || []), ...problems(r).flatMap(p => [p.id, p.title])].join(" ").toLowerCase());
    return texts.get(r);
  }
  function summary(r) {
    const first = problems(r).find(p => p.cls === shown(r)) || (r.verdict !== "pass" && problems(r)[0]);
    return first ? [first.id && h("b", {}, first.id.replace(r.id + "#", "") + " "), first.title] : "";
  }

  // One scenario.
  function scenario(i, frame) {
    const r = results[i];
    const found = problems(r);
    const place = h("div", {}, h("p", { class: "dim" }, "unpacking…"));
    const page = [navigation(""), h("h1", {}, verdict(shown(r)), " ", key(r)), r.title && h("div", {}, r.title),
      h("div", { class: "dim" }, [r.file, ms(r.duration_ns), r.frames + " frames", (r.tags || []).join(" ")].filter(Boolean).join(" · ")),
      r.rerun && h("pre", {}, r.rerun),
      found.map(p => h("div", { class: "problem " + p.cls }, h("div", {}, verdict(p.cls), " ", p.id && h("b", {}, p.id), " ", p.title,
        p.entries.map(seq => [" ", h("a", { href: link(r) + "/f/" + seq }, "#" + seq)]).flat()), p.parts.length > 0 && h("dl", {}, p.parts), (p.below || []).filter(Boolean))),
      (r.checks || []).length > 0 && h("details", {}, h("summary", {}, (r.checks || []).length + " checks"), h("table", {}, r.checks.map(c => h("tr", {}, h("td", {}, verdict(c.not_reached ? "fail" : c.verdict)), h("td", {}, c.slug), h("td", {}, c.title), h("td", { class: "wide dim" }, (c.requirements || []).join(" ")))))),
      (r.notes || []).length > 0 && h("ul", {}, r.notes.map(n => h("li", {}, n))), place].flat(3);
    unpack(i).then(d => place.replaceChildren(...transcript(r, d, found, frame)), e => place.replaceChildren(h("p", { class: "error" }, "cannot unpack the transcript: " + e)));
    return page;
  }

  function transcript(r, d, found, frame) {
    const pins = new Map();
    for (const p of found) for (const seq of p.entries) pins.set(seq, [...(pins.get(seq) || []), p]);
    const rows = h("div", { role: "list" });
    const more = h("div", { class: "more" });
    const step = 300;
    let some = d.entries, done = 0;
    const add = upTo => {
      const part = document.createDocumentFragment();
      for (; done < Math.min(upTo, some.length); done++) part.append(row(some[done], d, pins));
      rows.append(part);
    };
    new IntersectionObserver(seen => { if (seen.some(s => s.isIntersecting) && done < some.length) { add(done + step); more.style.display = "none"; requestAnimationFrame(() => { more.style.display = ""; }); } }, { rootMargin: "600px" }).observe(more);
    const only = h("input", { type: "search", placeholder: "search frames", "aria-label": "search frames", oninput: e => {
      const text = e.target.value.toLowerCase();
      some = text ? d.entries.filter(x => x[6].toLowerCase().includes(text) || x[7].toLowerCase().includes(text)) : d.entries;
      done = 0; rows.replaceChildren(); add(step);
    } });
    add(step);
    if (frame) setTimeout(() => {
      add(d.entries.findIndex(x => x[0] === frame) + 50);
      const e = document.getElementById("f" + frame);
      if (e) { e.classList.add("at"); e.scrollIntoView({ block: "center" }); e.focus({ preventScroll: true }); }
    });
    const stderr = d.entries.filter(x => x[3] === "stderr").map(x => x[7]).join("");
    const fold = (title, text, show) => text ? h("details", {}, h("summary", {}, title), show(text)) : null;
    return [d.problem && h("p", { class: "warn" }, d.problem), fold("stderr", stderr, t => h("pre", {}, t)), fold("workspace, before and after", d.workspace, diff), fold("as a golden", d.rendered, t => h("pre", {}, t)),
      d.entries.length > 0 && [h("h2", {}, "What happened"), h("div", { class: "tools" }, only, h("span", { class: "dim" }, d.entries.length + " entries")),
        h("div", { class: "lanes" }, ["", "editor", "agent", "model", "terminal", "process"].map(l => h("span", {}, l))), rows, more]].flat().filter(Boolean);
  }

  const lanes = { editor: [2, 4, "to-right"], agent: [2, 4, "to-left"], stderr: [3, 4], model: [4, 5], terminal: [5, 6], process: [6, 7] };
  function row([seq, us, conn, source, kind, ref, text, raw], d, pins) {
    const time = (us / 1e6).toFixed(3) + (conn ? " ·" + conn : "");
    const [from, to, wire] = lanes[source] || [2, 7];
    let cls = "msg " + (wire && kind !== "written" ? "wire " + wire : "box"), column = from + " / " + to;
    if (source === "model") {
      if (kind === "model-request" || kind === "model-aborted") { cls = "msg wire to-right"; column = "3 / 5"; }
      else if (kind === "model-chunk" || kind === "model-done") { cls = "msg wire to-left"; column = "3 / 5"; }
    }
    if (source === "note") {
      cls = "msg band";
      try { text = JSON.parse(raw).text || text; } catch { /* shown as it came */ }
    }
    const hits = pins.get(seq) || [];
    if (hits.length) cls += " " + hits[0].cls;
    const e = h("button", { class: "row", id: "f" + seq, role: "listitem", title: text, onclick: () => toggle(e, raw, d.cut && d.cut.includes(seq)) },
      h("time", {}, seq + "  " + time), h("span", { class: cls, style: source === "note" ? "" : "grid-column:" + column }, wire ? text.replace(/^(-->|<--) /, "") : text),
      hits.map(p => h("span", { class: "pin " + p.cls }, (p.id ? p.id + ": " : "") + p.title)));
    return e;
  }
  function toggle(e, raw, cut) {
    const next = e.nextElementSibling;
    if (next && next.classList.contains("json")) { next.remove(); return; }
    let text = raw;
    try { if (!cut) text = JSON.stringify(JSON.parse(raw), null, 2); } catch { /* no JSON: shown as it came */ }
    e.after(h("pre", { class: "json" }, text + (cut ? "\n(the rest is in transcript.jsonl)" : "")));
  }

  function requirements() {
    const all = (run.conformance || {}).requirements || [];
    const list = h("tbody");
    const fill = text => list.replaceChildren(...all.filter(q => [q.id, q.tier, q.level, q.verdict, q.reason, q.tck].join(" ").toLowerCase().includes(text)).map(q =>
      h("tr", {}, h("td", {}, verdict(q.verdict)), h("td", {}, q.id), h("td", {}, q.tier), h("td", { class: "wide" }, q.level), h("td", { class: "right" }, q.evidence),
        h("td", {}, q.reason, (q.checks || []).map(c => [" ", byKey.has(c.split("#")[0]) ? h("a", { href: "#/s/" + encodeURIComponent(c.split("#")[0]) }, c) : c]).flat(), " ", (q.rules || []).join(" ")))));
    fill("");
    return [navigation("#/requirements"), h("h1", {}, (run.conformance || {}).verdict || "no requirement table"),
      h("div", { class: "tools" }, h("input", { type: "search", id: "search", placeholder: "search requirements", "aria-label": "search requirements", oninput: e => fill(e.target.value.toLowerCase()) })),
      h("table", {}, h("thead", {}, h("tr", {}, ["verdict", "id", "tier"].map(t => h("th", {}, t)), h("th", { class: "wide" }, "level"), h("th", {}, "evidence"), h("th", {}, "why"))), list)];
  }

  // Runs with a finding are on this page; the transcripts of the others lie
  // beside it.
  function cellLink(c) {
    const id = c.out.replace(/\/transcript\.jsonl$/, "");
    return byKey.has(id) ? { href: "#/s/" + encodeURIComponent(id) } : { href: c.out.split("/").map(encodeURIComponent).join("/"), title: "acp-test show " + c.out };
  }
  function sweep() {
    const s = run.sweep || {};
    const cells = s.cells || [];
    return [navigation("#/sweep"), h("h1", {}, "Sweep"),
      h("div", { class: "dim" }, `${s.explored} schedules explored, ${s.pruned} pruned, ${s.inconclusive} inconclusive; ${s.pairs_tried} of ${s.pairs} pairs of situation and action`),
      [...new Set(cells.map(c => c.scenario))].map(name => [h("h2", {}, name), h("table", { class: "map" },
        h("tr", {}, h("th", {}, ""), (s.actions || []).map(a => h("th", {}, a))),
        (s.points || []).filter(p => cells.some(c => c.scenario === name && c.point === p)).map(p => h("tr", {}, h("th", {}, p), (s.actions || []).map(a => {
          const here = cells.filter(c => c.scenario === name && c.point === p && c.action === a);
          return h("td", { class: "cell" }, here.map(c => h("div", { class: c.verdict }, c.out ? h("a", cellLink(c), c.finding || c.verdict) : c.finding || c.verdict)));
        }))))]).flat(),
      (s.repros || []).length > 0 && [h("h2", {}, "Repros"), h("ul", {}, s.repros.map(f => h("li", {}, h("code", {}, "acp-test run " + f))))]].flat(2);
  }

  function place() {
    const [what, id, , frame] = location.hash.replace(/^#\/?/, "").split("/");
    let name = id || "";
    try { name = decodeURIComponent(name); } catch { /* a damaged link names no scenario */ }
    return [what, name, frame];
  }
  function show() {
    // What there is only one of is shown at once; u leads to the overview.
    if (!location.hash && results.length === 1 && !run.conformance && !run.sweep) return location.replace(link(results[0]));
    const [what, name, frame] = place();
    let page;
    if (what === "s") {
      page = byKey.has(name) ? scenario(byKey.get(name), Number(frame) || 0) : [navigation(""), h("p", {}, "There is no scenario " + name + " in this run.")];
    } else page = what === "requirements" ? requirements() : what === "sweep" ? sweep() : overview();
    app.replaceChildren(...page.filter(Boolean));
    if (!frame) scrollTo(0, 0);
    mark();
  }

  function mark() {
    const rows = app.querySelectorAll("tbody tr");
    rows.forEach((tr, i) => tr.classList.toggle("at", i === view.at && !location.hash.startsWith("#/s/")));
    if (view.moved && rows[view.at]) rows[view.at].scrollIntoView({ block: "nearest" });
  }
  addEventListener("keydown", e => {
    if (e.target.tagName === "INPUT") { if (e.key === "Escape") e.target.blur(); return; }
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const open = location.hash.startsWith("#/s/");
    if (e.key === "/") { const s = app.querySelector("input[type=search]"); if (s) { s.focus(); e.preventDefault(); } }
    else if (e.key === "u") location.hash = "#/";
    else if ((e.key === "j" || e.key === "k") && !open) { view.at = Math.max(0, Math.min(view.rows.length - 1, view.at + (e.key === "j" ? 1 : -1))); view.moved = true; mark(); }
    else if (e.key === "Enter" && !open && e.target === document.body && view.rows[view.at]) location.hash = link(view.rows[view.at]);
    else if (e.key === "n") {
      const now = byKey.get(place()[1]) ?? -1;
      const bad = r => ["fail", "error"].includes(shown(r));
      const next = results.findIndex((r, i) => i > now && bad(r));
      const to = next >= 0 ? next : results.findIndex(bad);
      if (to >= 0) location.hash = link(results[to]);
    }
  });
  addEventListener("hashchange", show);
  show();
})();
