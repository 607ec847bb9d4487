// Sorts and filters the table of claims, and makes headings links. Without it the page is the same, with a plain table.
(() => {
  "use strict";
  for (const heading of document.querySelectorAll(".claim h3")) {
    const link = document.createElement("a");
    link.href = `#${heading.closest(".claim").id}`;
    link.append(...heading.childNodes);
    heading.append(link);
  }
  const table = document.getElementById("all");
  if (!table) return;
  document.documentElement.classList.add("js");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);

  // On a phone rows are laid out as blocks, which would no longer be read as a table.
  table.role = "table";
  for (const part of [table.tHead, body]) part.role = "rowgroup";
  for (const row of [...rows, table.tHead.rows[0]]) row.role = "row";
  for (const head of heads) head.role = "columnheader";
  for (const row of rows) {
    for (const cell of row.cells) cell.role = cell.tagName === "TH" ? "rowheader" : "cell";
  }

  const number = (text) => {
    if (text === "" || text === "–") return NaN;
    return Number(text.replace(" %", "").replaceAll(",", "").replace("−", "-").replace("∞", "Infinity"));
  };
  const key = (row, column, numeric) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    return numeric ? number(text) : text;
  };
  const compare = (a, b, numeric) => {
    if (!numeric) return a.localeCompare(b, "en", { numeric: true });
    // Rows without a number come last, whatever the direction.
    return a === b ? 0 : a - b;
  };
  const sort = (column) => {
    const head = heads[column];
    const numeric = head.dataset.kind === "number";
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const keyed = rows.map((row, i) => [key(row, column, numeric), i, row]);
    keyed.sort(([a, i], [b, j]) => {
      if (numeric && (Number.isNaN(a) || Number.isNaN(b))) return Number.isNaN(a) - Number.isNaN(b) || i - j;
      const order = compare(a, b, numeric);
      return (descending ? -order : order) || i - j;
    });
    body.append(...keyed.map(([, , row]) => row));
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.dataset.name = head.textContent;
    button.addEventListener("click", () => sort(column));
    head.replaceChildren(button);
  });

  const form = document.getElementById("filter");
  const find = document.getElementById("find");
  const verdict = document.getElementById("by-verdict");
  const level = document.getElementById("by-level");
  const only = document.getElementById("only-unexpected");
  const shown = document.getElementById("shown");
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const fits =
        words.every((word) => texts.get(row).includes(word)) &&
        (!verdict.value || row.querySelector(".badge").classList.contains(verdict.value)) &&
        (!level.value || row.dataset.level === level.value) &&
        (!only.checked || row.classList.contains("unexpected"));
      row.hidden = !fits;
      count += fits;
    }
    shown.textContent = count === rows.length ? `all ${count} shown` : `${count} of ${rows.length} shown`;
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  filter();

  // Paper cannot be clicked.
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
})();
