// The weights of Sphinx, but pages for contributors come after those for users.
const CONTRIBUTORS = ["design", "map", "mutants", "releasing"];

var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    CONTRIBUTORS.includes(page) ? score - 100 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
