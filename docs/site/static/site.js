"use strict";

// Replaces the number of the version by a choice, if the site has several.
for (const place of document.querySelectorAll(".versions")) {
  const current = place.dataset.version;
  const versions = typeof VERSIONS === "undefined" ? [current] : VERSIONS;
  if (versions.length < 2) continue;
  const choice = document.createElement("select");
  choice.setAttribute("aria-label", "Version");
  for (const version of versions) choice.add(new Option(version, version, false, version === current));
  const root = document.documentElement.dataset.content_root;
  choice.addEventListener("change", () => {
    location.href = `${root}../${choice.value}/docs/index.html`;
  });
  place.replaceChildren("Version ", choice);
}

// Makes code and tables that are wider than the page reachable by keyboard, and marks them.
function markScrollers() {
  for (const box of document.querySelectorAll("pre, .table-wrapper, .graphviz, p:has(> img)")) {
    const scrolls = box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("scrolls", scrolls);
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
addEventListener("resize", markScrollers);
markScrollers();

// Adds a choice for each of these columns above a table that has all of them. It hides the rows of other values.
const FILTERED = ["library", "severity", "rule"];
function addFilters(table) {
  const head = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  if (!FILTERED.every((name) => head.includes(name))) return;
  const rows = [...table.tBodies[0].rows];
  const bar = document.createElement("p");
  const count = document.createElement("output");
  bar.className = "filters";
  const choices = FILTERED.map((name) => {
    const text = (row) => row.cells[head.indexOf(name)].textContent;
    const label = document.createElement("label");
    const choice = document.createElement("select");
    choice.add(new Option("all", ""));
    for (const value of [...new Set(rows.map(text))].sort()) choice.add(new Option(value));
    choice.addEventListener("change", show);
    label.append(name, " ", choice);
    bar.append(label, " ");
    return { choice, text };
  });
  function show() {
    for (const row of rows) row.hidden = choices.some(({ choice, text }) => choice.value && choice.value !== text(row));
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  }
  bar.append(count);
  (table.closest(".table-wrapper") ?? table).before(bar);
  show();
}
for (const table of document.querySelectorAll("table")) {
  if (table.tHead && table.tBodies.length) addFilters(table);
}
