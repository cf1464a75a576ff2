"use strict";

// Sphinx's defaults, and names first: a symbol with the name that was searched comes before symbols that contain it, before
// the parameters of functions and before pages.
const query = (new URLSearchParams(location.search).get("q") ?? "").trim().toLowerCase();

var Scorer = {
  score: ([, title, , description, score]) => {
    const name = title.split(/::|\./).at(-1).replace(/\(.*/, "").toLowerCase();
    if (description?.includes("parameter")) return score - 20;
    return name === query && description ? score + 100 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
