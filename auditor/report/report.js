// Finds and sorts claims and theorems, and expands the details of a claim when they are opened. Without it the page has
// the summary, unexpected findings, figures, errata and a plain table of claims.
(() => {
  "use strict";
  const root = document.documentElement;
  const section = document.getElementById("claims");
  const form = document.getElementById("filter");
  if (!section || !form) return;
  root.classList.add("js");
  const rows = Array.from(section.querySelectorAll(".all > tbody > tr"));
  const order = new Map(rows.map((row, i) => [row, i]));
  const together = Number(section.dataset.together);
  const packed = document.getElementById("pack-claims-0") !== null;
  const MOST = 25; // rows of results that are shown at once

  const make = (name, text = "") => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };
  const entryOf = (row) => row.closest(".entry").dataset.entry;
  const nameOf = (row) => (packed ? `${entryOf(row)}/${nameIn(row.cells[0])}` : linkText(row));
  const nameIn = (cell) => {
    const copy = cell.cloneNode(true);
    for (const part of copy.querySelectorAll(".muted")) part.remove();
    return copy.textContent.trim();
  };
  const linkText = (row) => `${entryOf(row)}/${row.cells[0].querySelector("a").textContent}`;

  // ---- packed parts
  const expand = async (name) => {
    const bytes = Uint8Array.from(atob(document.getElementById(`pack-${name}`).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const part = document.createElement("template");
    part.innerHTML = await new Response(stream).text();
    return part.content;
  };
  const parts = new Map();
  const partOf = (name) => {
    if (!parts.has(name)) parts.set(name, expand(name));
    return parts.get(name);
  };
  const fill = async (fold) => {
    const name = fold.dataset.pack;
    if (!name) return;
    delete fold.dataset.pack;
    const part = (await partOf(name)).cloneNode(true);
    fold.append(part);
  };
  const articleOf = async (row) => {
    const i = order.get(row);
    const part = await partOf(`claims-${Math.floor(i / together)}`);
    return part.children[i % together].cloneNode(true);
  };

  // ---- details of a claim, below its row
  const link = (row) => {
    const cell = row.cells[0];
    if (cell.querySelector("a")) return;
    const anchor = make("a");
    anchor.href = `#${row.id}`;
    const name = Array.from(cell.childNodes).filter((node) => node.nodeName !== "SPAN");
    anchor.append(...name);
    anchor.setAttribute("aria-expanded", "false");
    cell.prepend(anchor, " ");
  };
  const detailOf = (row) => (row.nextElementSibling?.classList.contains("detail") ? row.nextElementSibling : null);
  const show = async (row, source = row) => {
    if (detailOf(row)) return;
    const detail = make("tr");
    detail.className = "detail";
    const cell = make("td");
    cell.colSpan = row.cells.length;
    detail.append(cell);
    row.after(detail);
    row.querySelector("a")?.setAttribute("aria-expanded", "true");
    cell.append(await articleOf(source));
  };
  const hide = (row) => {
    detailOf(row)?.remove();
    row.querySelector("a")?.setAttribute("aria-expanded", "false");
  };
  // On a phone rows are laid out as blocks, which would no longer be read as a table.
  const roles = (part) => {
    for (const made of part.querySelectorAll(".cards, .audited .counts")) {
      made.role = "table";
      for (const group of [made.tHead, ...made.tBodies]) group.role = "rowgroup";
      for (const row of made.rows) row.role = "row";
      for (const cell of made.tHead.rows[0].cells) cell.role = "columnheader";
      for (const body of made.tBodies) {
        for (const row of body.rows) {
          for (const cell of row.cells) cell.role = cell.tagName === "TH" ? "rowheader" : "cell";
        }
      }
    }
  };
  const open = async (fold) => {
    if (fold.classList.contains("entry") && packed) {
      for (const row of fold.querySelectorAll(".all > tbody > tr[id]")) link(row);
    }
    await fill(fold);
    roles(fold);
  };
  document.addEventListener("toggle", (event) => event.target.open && open(event.target), true);
  const follow = async () => {
    if (location.hash === "#print-all") return printAll(false);
    const row = packed && location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!row || !order.has(row)) return;
    const fold = row.closest("details");
    fold.open = true;
    link(row);
    await show(row);
    row.scrollIntoView();
    // What came into sight may have another height than was expected.
    requestAnimationFrame(() => row.scrollIntoView());
  };
  if (packed) {
    document.addEventListener("click", (event) => {
      if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
      const anchor = event.target.closest("a[href^='#claim-']");
      if (!anchor) return;
      const row = document.getElementById(anchor.getAttribute("href").slice(1));
      const here = anchor.closest(".all > tbody > tr");
      if (here) {
        // A claim of a table opens below its line.
        event.preventDefault();
        if (detailOf(here)) hide(here);
        else show(here, row);
        if (here === row) history.replaceState(null, "", anchor.href);
      } else if (location.hash === anchor.getAttribute("href")) {
        event.preventDefault();
        follow();
      }
    });
  }
  addEventListener("hashchange", follow);

  // ---- find and sort
  const find = document.getElementById("find");
  const verdict = document.getElementById("by-verdict");
  const level = document.getElementById("by-level");
  const column = document.getElementById("by-column");
  const only = document.getElementById("only-unexpected");
  const shown = document.getElementById("shown");
  const found = document.getElementById("found");
  const box = { claims: document.getElementById("found-claims"), theorems: document.getElementById("found-theorems") };
  let texts = null;
  let theorems = null;

  const learnTheorems = async () => {
    const folds = Array.from(document.querySelectorAll("#theorems .fold"));
    const tables = await Promise.all(
      folds.map(async (fold) => (fold.dataset.pack ? await partOf(fold.dataset.pack) : fold).querySelector("table")),
    );
    return tables.flatMap((table) => Array.from(table.tBodies[0].rows, (row) => [row, row.textContent.toLowerCase()]));
  };
  const learn = () => {
    texts ??= rows.map((row) => {
      const title = row.closest(".entry").querySelector("summary").textContent;
      return `${entryOf(row)}/${row.textContent} ${title}`.toLowerCase();
    });
    theorems ??= learnTheorems();
  };
  const number = (text) => {
    if (text === "" || text === "–" || text === "-") return NaN;
    return Number(text.replace(" %", "").replaceAll(",", "").replace("−", "-").replace("∞", "Infinity"));
  };
  const sorted = (listed, i, numeric, down) => {
    const key = (row) => {
      const cell = row.cells[i];
      const text = cell.dataset.sort ?? cell.textContent.trim();
      return numeric ? number(text) : text;
    };
    const keyed = listed.map((row) => [key(row), order.get(row), row]);
    const collator = new Intl.Collator("en", { numeric: true });
    keyed.sort(([a, m], [b, n]) => {
      // Rows without a number come last, whatever the direction.
      if (numeric && (Number.isNaN(a) || Number.isNaN(b))) return Number.isNaN(a) - Number.isNaN(b) || m - n;
      const by = numeric ? (a === b ? 0 : a - b) : collator.compare(a, b);
      return (down ? -by : by) || m - n;
    });
    return keyed.map(([, , row]) => row);
  };
  const present = (row) => {
    const copy = row.cloneNode(true);
    const id = row.id || row.querySelector("a").getAttribute("href").slice(1);
    copy.removeAttribute("id");
    const cell = copy.cells[0];
    const anchor = make("a");
    anchor.href = `#${id}`;
    const name = (packed ? nameOf(row) : linkText(row)).split("/");
    name.forEach((part, i) => anchor.append(...(i ? ["/", make("wbr")] : []), part));
    const note = cell.querySelector("span.muted");
    cell.replaceChildren(anchor, ...(note ? [" ", note] : []));
    return copy;
  };
  const table = (head, listed, where, what, draw) => {
    where.replaceChildren();
    if (!listed.length) return;
    const made = make("table");
    made.className = what === "claims" ? "cards all" : "cards theorems";
    const body = make("tbody");
    made.append(head.cloneNode(true), body);
    let count = 0;
    const more = make("button");
    more.type = "button";
    const add = (most) => {
      body.append(...listed.slice(count, count + most).map(draw));
      count = Math.min(listed.length, count + most);
      more.textContent = `Show the other ${(listed.length - count).toLocaleString("en")}`;
      more.hidden = count === listed.length;
    };
    more.addEventListener("click", () => add(listed.length));
    add(MOST);
    const title = make("h3", `${listed.length.toLocaleString("en")} ${what}`);
    where.append(title, made, more);
    roles(where);
    if (what === "claims") {
      Array.from(made.tHead.rows[0].cells).forEach((cell, i) => {
        const choice = column.options[i];
        const button = make("button", cell.textContent);
        button.type = "button";
        cell.dataset.name = cell.textContent;
        if (i && column.value === String(i)) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
        button.addEventListener("click", () => {
          descending = column.value === choice.value && !descending;
          column.value = choice.value;
          filter();
        });
        cell.replaceChildren(button);
      });
    }
  };
  let descending = false;
  let turn = 0;
  const filter = async () => {
    const mine = ++turn;
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const active = words.length || verdict.value || level.value || column.value || only.checked;
    found.hidden = !active;
    if (!active) {
      box.claims.replaceChildren();
      box.theorems.replaceChildren();
      shown.textContent = `${rows.length.toLocaleString("en")} claim${rows.length === 1 ? "" : "s"}`;
      return;
    }
    learn();
    const fits = (text) => words.every((word) => text.includes(word));
    const about = (row) =>
      (!verdict.value || row.querySelector(`i.${verdict.value}`)) &&
      (!level.value || row.dataset.level === level.value) &&
      (!only.checked || row.classList.contains("unexpected"));
    let listed = rows.filter((row, i) => fits(texts[i]) && about(row));
    if (column.value) {
      listed = sorted(listed, Number(column.value), column.selectedOptions[0].dataset.kind === "number", descending);
    }
    table(section.querySelector(".all > thead"), listed, box.claims, "claims", present);
    const learned = await theorems;
    if (mine !== turn) return;
    const named = learned.filter(([, text]) => words.length && fits(text)).map(([row]) => row);
    if (named.length) {
      const head = named[0].closest("table").tHead;
      table(head, named, box.theorems, "theorems", (row) => row.cloneNode(true));
    } else box.theorems.replaceChildren();
    if (!listed.length && !named.length) box.claims.replaceChildren(make("p", "Nothing fits."));
    const top = found.getBoundingClientRect().top;
    if (top < 0 || top > innerHeight) found.scrollIntoView();
    const said = `${listed.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} claims`;
    shown.textContent = said + (named.length ? `, ${named.length.toLocaleString("en")} theorems` : "");
  };
  let waiting = 0;
  form.hidden = false;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 40);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    descending = false;
    setTimeout(filter);
  });
  find.addEventListener("focus", learn);
  filter();
  (window.requestIdleCallback ?? setTimeout)(learn);

  // ---- print
  const printAll = async (now) => {
    const folds = Array.from(document.querySelectorAll("details"));
    await Promise.all(folds.map(open));
    if (packed) await Promise.all(rows.map((row) => show(row)));
    for (const fold of folds) fold.open = true;
    root.classList.add("whole");
    if (now) print();
  };
  const all = document.getElementById("print-all");
  if (all) {
    all.hidden = false;
    all.addEventListener("click", (event) => {
      event.preventDefault();
      printAll(true);
    });
  }
  for (const part of document.querySelectorAll(".overview, #errata")) roles(part);
  follow();
})();
