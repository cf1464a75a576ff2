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
  for (const box of document.querySelectorAll("pre, .table-wrapper, .graphviz")) {
    const scrolls = box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("scrolls", scrolls);
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
addEventListener("resize", markScrollers);
markScrollers();
