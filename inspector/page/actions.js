import { h, button, copy, say } from "./dom.js";
import { json } from "./trace.js";

// act asks the server to do something.
export const act = (name, body) =>
  json("do/" + name, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// perform does it and shows what was made, or why it could not be.
export async function perform(name, body) {
  say("this takes a moment");
  try {
    const made = await act(name, body);
    result(
      made.title || name,
      made.text,
      made.left &&
        h(
          "p",
          { class: "warn" },
          made.left.map(l => "Left out: " + l + " "),
        ),
    );
  } catch (e) {
    result("It could not be done", e.message);
  }
}

// result shows a text that was made, to copy and to keep.
export function result(title, text, more) {
  const box = h(
    "dialog",
    { class: "made", "aria-label": title },
    h("h2", {}, title),
    more,
    h("pre", { tabindex: 0 }, text),
    h(
      "div",
      { class: "bar" },
      button("copy", () => copy(text, title)),
      button("close", () => box.close()),
    ),
  );
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

// frames are the messages of entries as lines, as they crossed the wire.
export async function frames(trace, list) {
  const on = Array.from(list)
    .filter(i => ["editor", "agent"].includes(trace.name("source", i)) && trace.name("kind", i) !== "written")
    .slice(0, 2000);
  return (
    (await trace.rows(on))
      .map((r, k) => (trace.name("source", on[k]) === "editor" ? "--> " : "<-- ") + r.raw)
      .join("\n") + "\n"
  );
}

// report is a text for a bug report: what was found, and the frames around it.
export async function report(c, trace, problems) {
  const parts = [`# ${problems.length ? problems[0].title : c.key}`, ""];
  if (c.result && c.result.rerun) parts.push("Run it with `" + c.result.rerun + "`.", "");
  for (const p of problems) {
    parts.push(`## ${[p.id, p.title].filter(Boolean).join(": ")}`, "");
    if (p.citation) parts.push("> " + p.citation, "");
    if (p.entries.length) {
      const from = Math.max(0, p.entries[0] - 4),
        to = Math.min(trace.n, p.entries.at(-1) + 3, from + 60),
        list = [];
      for (let i = from; i < to; i++) list.push(i);
      const rows = await trace.rows(list);
      parts.push(
        "```",
        ...list.map((i, k) => `#${i + 1} ${(trace.at[i] / 1e3).toFixed(3)}  ${rows[k].line}`),
        "```",
        "",
      );
    }
  }
  const v = c.result || {};
  parts.push(`Agent: ${[v.agent_name || trace.head.agent, v.agent_version].filter(Boolean).join(" ")}`);
  return parts.join("\n") + "\n";
}
