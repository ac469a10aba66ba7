import { h } from "./dom.js";

// What may stand in a message, as tables have it: calls are the types of parameters and result by method, whole those
// of messages that have no such parts;
// a type has fields ([name, with ? if it may be left out, type, "unstable"]), forms ([tag, type]) that the member
// "by" tells apart, values, or says what it is. A type is written NAME, with [] or [+] for a list, {} for an
// object of them, and |null.
export class Fields {
  constructor(tables) {
    Object.assign(this, { calls: {}, whole: {}, types: {}, says: {}, statements: [], cite: "" }, tables);
  }

  // at finds what is known of the place in a message to which a path leads: the member, its type, and the
  // type that has it. Undefined where nothing is.
  at(method, value, path) {
    const call = this.calls[method],
      whole = this.whole[method];
    if (!path.length || (!call && !whole)) return undefined;
    let expression = whole || (path[0] === "params" ? call[0] : path[0] === "result" ? call[1] : ""),
      here = whole ? value : value && value[path[0]];
    let found = !whole && expression ? { name: path[0], type: expression } : undefined;
    for (const key of whole ? path : path.slice(1)) {
      if (!expression) return undefined;
      const plain = this.listed(expression.replace(/\|null$/, ""), here),
        of = /^(.*)(\[\+?\]|\{\})$/.exec(plain);
      if (of) ((expression = of[1]), (found = { ...found, name: key, type: of[1], item: true }));
      else {
        const owner = this.form(plain, here),
          field = owner && (this.types[owner].fields || []).find(f => f[0].replace(/\?$/, "") === key);
        if (!field) return undefined;
        found = {
          name: key,
          owner,
          type: field[1],
          optional: field[0].endsWith("?"),
          unstable: field[2] === "unstable" || this.types[owner].unstable,
        };
        expression = field[1];
      }
      here = here === null || typeof here !== "object" ? undefined : here[key];
    }
    return found;
  }
  // listed is the form of a type that a list has, of one that may be a list.
  listed(name, value) {
    const form = Array.isArray(value) && ((this.types[name] || {}).forms || []).find(f => f[1].endsWith("]"));
    return form ? form[1] : name;
  }
  // form is the type that an object of a type has: of several the one that its tag tells, or that has most of
  // its members.
  form(name, value) {
    const type = this.types[name];
    if (!type || !type.forms) return type && name;
    if (type.by) {
      const tag = value && value[type.by],
        form = type.forms.find(f => f[0] === tag) || type.forms.find(f => f[0] === "*");
      return form && this.form(form[1].replace(/\|null$/, ""), value);
    }
    const keys = Object.keys(value || {}),
      fits = f => {
        const inner = this.form(f[1].replace(/\|null$/, ""), value),
          names = ((this.types[inner] || {}).fields || []).map(x => x[0].replace(/\?$/, ""));
        return [keys.filter(k => names.includes(k)).length - keys.filter(k => !names.includes(k)).length, inner];
      };
    return type.forms.map(fits).sort((a, b) => b[0] - a[0])[0][1];
  }
  // members are those of a type: name, type, and whether one may be left out.
  members(name) {
    const fields = (this.types[name.replace(/\|null$/, "")] || {}).fields || [];
    return fields.map(([field, type, mark]) => ({
      name: field.replace(/\?$/, ""),
      type,
      optional: field.endsWith("?"),
      unstable: mark === "unstable",
    }));
  }
  // example is a value of a type with no more than it must have; known are values of members by their names.
  example(expression, known = {}, depth = 0) {
    const name = expression.replace(/\|null$/, ""),
      list = /^(.*)\[(\+?)\]$/.exec(name),
      type = this.types[name] || { is: name };
    if (list) return depth > 6 || !list[2] ? [] : [this.example(list[1], known, depth + 1)];
    if (name.endsWith("{}") || depth > 8) return {};
    if (type.values) return type.values[0];
    if (type.forms) {
      const [tag, form] = type.forms[0],
        value = this.example(form, known, depth + 1);
      return type.by && typeof value === "object" ? { [type.by]: tag, ...value } : value;
    }
    if (type.fields)
      return Object.fromEntries(
        this.members(name)
          .filter(f => !f.optional)
          .map(f => [f.name, known[f.name] ?? this.example(f.type, known, depth + 1)]),
      );
    const is = type.is || "";
    if (is !== name && this.types[is]) return this.example(is, known, depth + 1);
    if (/^string/.test(is)) return "";
    if (/^boolean/.test(is)) return false;
    const least = /^whole number from (-?\d+)/.exec(is);
    return least ? Math.max(0, Number(least[1])) : /^number/.test(is) ? 0 : {};
  }
  // describe shows what is known of a place.
  describe(method, value, path) {
    const is = this.at(method, value, path),
      last = path.at(-1);
    const key = is && is.owner ? is.owner + "." + is.name : "";
    const said = [
      ...new Set([
        ...(this.says[key] || []),
        ...(this.says[last === (this.whole[method] ? "type" : "method") ? method : last] || []),
        ...(this.says[is && is.type.replace(/\W.*$/, "")] || []),
      ]),
    ].slice(0, 4);
    if (!is && !said.length) return null;
    const base = is ? is.type.replace(/\|null$|\[\+?\]|\{\}/g, "") : "",
      type = this.types[base] || {};
    const cite =
      is &&
      (is.owner || this.types[base]) &&
      (is.unstable ? this.cite.replace(".json", ".unstable.json") : this.cite) +
        (is.owner ? is.owner + (this.cite.includes("$defs") ? "/properties/" : ": ") + is.name : base);
    return h(
      "section",
      { class: "field-about" },
      is && [
        h(
          "p",
          {},
          h("b", {}, is.name),
          " ",
          h("code", {}, is.type),
          type.is && type.is !== base ? " = " + type.is : "",
          h(
            "span",
            { class: "dim" },
            [
              is.owner && (is.optional ? "may be left out" : "required"),
              is.unstable && "unstable",
              is.owner && "in " + is.owner,
            ]
              .filter(Boolean)
              .map(t => " · " + t),
          ),
        ),
        type.values &&
          h(
            "p",
            {},
            "one of ",
            type.values.map(v => [h("code", {}, v), " "]),
            type.open && "or another",
          ),
        type.forms &&
          h(
            "p",
            {},
            type.by ? type.by + ": " : "one of ",
            type.forms.map(f => [h("code", {}, type.by ? f[0] : f[1]), " "]),
          ),
        type.fields && h("p", { class: "dim" }, type.fields.map(f => f[0]).join(", ")),
        cite && h("p", { class: "cite" }, cite),
      ],
      said
        .map(n => this.statements[n])
        .map(([id, level, text, where]) =>
          h("blockquote", {}, h("b", {}, id), " ", level, ": ", text, h("div", { class: "cite" }, where)),
        ),
    );
  }
}
