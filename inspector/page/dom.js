// Elements and texts. Text goes in as text: nothing from a run is ever markup.
export function h(tag, attrs, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (typeof v === "boolean" && k.startsWith("aria-")) e.setAttribute(k, v);
    else if (v !== undefined && v !== null && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  put(e, children);
  return e;
}
export function put(e, children) {
  for (const c of children.flat(Infinity))
    if (c || c === 0)
      e.append(c instanceof Node ? c : e instanceof HTMLTextAreaElement ? String(c) : visible(String(c)));
}

// visible is a text in which nothing moves the cursor, turns the direction of what is read or is not seen at all.
// What is edited or copied stays as it is.
const unseen = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const every = new RegExp(unseen, "gu");
export const visible = text =>
  !unseen.test(text)
    ? text
    : text.replace(every, c => {
        const code = c.codePointAt(0),
          hex = code.toString(16);
        return code < 0x80
          ? "\\x" + hex.padStart(2, "0")
          : code > 0xffff
            ? "\\U" + hex.padStart(8, "0")
            : "\\u" + hex.padStart(4, "0");
      });
export function fill(e, ...children) {
  e.replaceChildren();
  put(e, children);
}
export const button = (text, onclick, attrs) => h("button", { type: "button", onclick, ...attrs }, text);

// Times: ns of results, µs of entries.
export const ms = ns => (ns >= 1e9 ? (ns / 1e9).toFixed(1) + " s" : Math.round((ns || 0) / 1e6) + " ms");
export function lasting(us) {
  const a = Math.abs(us);
  if (a < 1000) return Math.round(us) + " µs";
  if (a < 1e6) return (us / 1e3).toFixed(a < 1e4 ? 2 : a < 1e5 ? 1 : 0) + " ms";
  if (a < 6e7) return (us / 1e6).toFixed(a < 1e7 ? 3 : 1) + " s";
  return Math.floor(us / 6e7) + " min " + Math.round((us % 6e7) / 1e6) + " s";
}
export const clock = us => (us / 1e3).toFixed(3);
export const count = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many || one + "s");

export const verdict = v => h("span", { class: "v " + v }, v);
export const pair = (label, text) =>
  text && text.length ? [h("dt", {}, label), h("dd", {}, Array.isArray(text) ? text.join("\n") : text)] : [];
export function diff(text) {
  return h(
    "pre",
    { class: "diff", tabindex: 0 },
    text
      .replace(/\n$/, "")
      .split("\n")
      .map(l => h("span", { class: l[0] === "+" ? "add" : l[0] === "-" && l !== "-want +got" ? "del" : "" }, l || " ")),
  );
}
export const folded = (title, text, show) =>
  text ? h("details", {}, h("summary", {}, title), (show || (t => h("pre", { tabindex: 0 }, t)))(text)) : null;

// say tells a screen reader what changed, and shows it for a moment.
let spoken;
export function say(text) {
  if (!spoken) document.body.append((spoken = h("div", { role: "status", class: "toast" })));
  spoken.textContent = text;
  spoken.classList.add("on");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => spoken.classList.remove("on"), 2500);
}

// copy puts a text on the clipboard, also where the page has no right to write it there itself.
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say(what + " copied");
}

// parsed is the JSON of a text, undefined if it is none.
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
