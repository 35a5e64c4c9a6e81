// Words count, and parts of words hardly: "rag" is not `ragged`. Pages for users come before the
// reference, and those for contributors last.
const CONTRIBUTORS = ["design", "map", "releasing"];

var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    score + (CONTRIBUTORS.includes(page) ? -100 : page.startsWith("recipes/") ? 12 : /^(reference\/|benchmarks)/.test(page) ? -6 : 6),
  objNameMatch: 11,
  objPartialMatch: 1,
  objPrio: { 0: 5, 1: 1, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 2,
  term: 5,
  partialTerm: 1,
};
