"use strict";
// Tables sort, filter and turn leaves. Without this script the first rows stand there all the same.

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Escapes are written from left to right, whatever is beside them.
const ESCAPES = /((?:\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})+)/;

// A sign for the rest of a character that the token before has.
const CONTINUED = "\u2025";

function bdi(text, className, name = "bdi") {
  const made = element(name, undefined, className);
  let rest = String(text);
  if (rest.startsWith(CONTINUED)) {
    made.append(element("bdi", CONTINUED));
    rest = rest.slice(1);
  }
  rest.split(ESCAPES).forEach((part, place) => {
    if (place % 2) {
      const inner = element("bdi", part);
      inner.dir = "ltr";
      made.append(inner);
    } else {
      made.append(part);
    }
  });
  return made;
}

// The tokens of a text as a whole follow its direction; others are apart.
function chips(tokens, name) {
  const list = element("span", undefined, "chips");
  for (const token of tokens) {
    const chip = bdi(Array.isArray(token) ? token[0] : token, "chip", name);
    if (Array.isArray(token)) chip.title = "id " + token[1];
    list.append(chip);
  }
  return list;
}

function cell(value, kind, label) {
  const made = element("td", undefined, kind);
  made.dataset.label = label;
  if (kind === "path") {
    const path = element("span", undefined, "path");
    value.forEach((stage, place) => {
      if (place) path.append(element("span", "→", "arrow"));
      path.append(chips(stage));
    });
    made.append(path);
  } else if (kind === "tokens" || kind === "cut") {
    made.append(chips(value, kind === "cut" ? "span" : "bdi"));
  } else if (kind === "id") {
    made.textContent = value ?? "";
  } else if (kind === "number") {
    const isBest = Array.isArray(value);
    const number = isBest ? value[0] : value;
    const shown = typeof number === "number" ? number.toLocaleString("en-US") : number ?? "";
    made.append(isBest ? element("b", shown, "best") : shown);
  } else {
    made.append(bdi(value));
  }
  return made;
}

function sortKey(value, kind) {
  if (kind !== "number" && kind !== "id") return typeof value === "string" ? value : JSON.stringify(value);
  if (Array.isArray(value)) value = value[0];
  if (typeof value === "number") return value;
  return value ? parseFloat(value) : -Infinity;
}

function prepare(box) {
  const rows = JSON.parse(box.querySelector("script").textContent);
  const table = box.querySelector("table");
  const heads = [...table.tHead.rows[0].cells];
  const kinds = heads.map((head) => head.dataset.kind);
  const labels = heads.map((head) => head.textContent);
  box.querySelector(".rest")?.remove();
  let shown = rows;
  let leaf = 0;
  // A phone gets short leaves.
  const narrow = matchMedia("(max-width: 40rem)").matches && !box.classList.contains("matrix");
  const size = narrow ? Math.min(Number(table.dataset.leaf), 8) : Number(table.dataset.leaf);

  const tools = element("div", undefined, "tools");
  const filter = element("input");
  filter.type = "search";
  filter.placeholder = "Filter";
  filter.setAttribute("aria-label", "Filter the rows");
  const back = element("button", "Back");
  const next = element("button", "Next");
  const place = element("output");
  tools.append(filter, back, next, place);
  if (rows.length > 10) table.before(tools);

  function show() {
    const leaves = Math.max(1, Math.ceil(shown.length / size));
    leaf = Math.min(Math.max(leaf, 0), leaves - 1);
    const first = leaf * size;
    const some = shown.slice(first, first + size);
    table.tBodies[0].replaceChildren(...some.map((row) => {
      const made = element("tr");
      made.append(...row.map((value, column) => cell(value, kinds[column], labels[column])));
      return made;
    }));
    const count = shown.length.toLocaleString("en-US");
    const from = shown.length ? (first + 1).toLocaleString("en-US") : "0";
    place.textContent = `${from} to ${(first + some.length).toLocaleString("en-US")} of ${count}`;
    back.disabled = leaf === 0;
    next.disabled = leaf === leaves - 1;
    back.hidden = next.hidden = rows.length <= size;
  }

  heads.forEach((head, column) => {
    const button = element("button", labels[column]);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      // Numbers are asked for from the largest on, text from its beginning.
      const usual = kinds[column] === "number" ? "descending" : "ascending";
      const other = usual === "descending" ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === usual ? other : usual;
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const keyed = rows.map((row) => [sortKey(row[column], kinds[column]), row]);
      keyed.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
      keyed.forEach(([, row], number) => { rows[number] = row; });
      leaf = 0;
      find();
    });
  });

  function find() {
    const wanted = filter.value.trim().toLowerCase();
    // Spaces in tokens are signs.
    shown = wanted
      ? rows.filter((row) => JSON.stringify(row).toLowerCase().replaceAll("\u00b7", " ").includes(wanted))
      : rows;
    show();
  }

  filter.addEventListener("input", () => { leaf = 0; find(); });
  back.addEventListener("click", () => { leaf -= 1; show(); });
  next.addEventListener("click", () => { leaf += 1; show(); });
  show();
}

document.querySelectorAll(".table").forEach(prepare);
