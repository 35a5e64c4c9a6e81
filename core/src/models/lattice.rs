//! Lattice of all ways to cut a piece into Unigram tokens, for sampling.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::polling::poll;

use super::random::next_f64;
use crate::error::{Error, Result};

#[derive(Debug, Clone)]
struct Node {
    /// Token id; `None` for the first and the last node.
    id: Option<u32>,
    span: Range<usize>,
    score: f64,
    /// Score of the best path from the beginning to the end of the token.
    best: f64,
    /// Index of the previous token on that path.
    before: usize,
}

/// All occurrences of tokens in a text.
#[derive(Debug)]
pub(crate) struct Lattice {
    nodes: Vec<Node>,
    /// Nodes that begin at each position.
    begins: Vec<Vec<usize>>,
    /// Nodes that end at each position.
    ends: Vec<Vec<usize>>,
}

/// Index of the first node; the end node is the second.
const BEGINNING: usize = 0;
const END: usize = 1;
const NOBODY: usize = usize::MAX;

/// Beyond this difference of two logarithms, adding the smaller changes nothing.
const MOST_DIFFERENCE: f64 = 50.0;

impl Lattice {
    /// Creates a lattice for a text of `length` bytes.
    pub(crate) fn new(length: usize) -> Self {
        let (begins, ends) = (vec![Vec::new(); length + 1], vec![Vec::new(); length + 1]);
        let mut lattice = Self { nodes: Vec::new(), begins, ends };
        lattice.add_node(None, 0..0, 0.0);
        lattice.add_node(None, length..length, 0.0);
        lattice.ends[0].push(BEGINNING);
        lattice.begins[length].push(END);
        lattice
    }

    fn add_node(&mut self, id: Option<u32>, span: Range<usize>, score: f64) {
        self.nodes.push(Node { id, span, score, best: 0.0, before: NOBODY });
    }

    pub(crate) fn add(&mut self, id: u32, span: Range<usize>, score: f64) {
        let node = self.nodes.len();
        self.begins[span.start].push(node);
        self.ends[span.end].push(node);
        self.add_node(Some(id), span, score);
    }

    /// Samples one of all paths, with the scores multiplied by `alpha`.
    pub(crate) fn sample(&self, alpha: f64) -> Result<Vec<(u32, Range<usize>)>> {
        let sums = self.forward(alpha)?;
        let (mut path, mut node) = (Vec::new(), END);
        let mut weights = Vec::new();
        loop {
            poll(1)?;
            let before = &self.ends[self.nodes[node].span.start];
            weights.clear();
            for &left in before {
                let weight = (sums[left] + alpha * self.nodes[left].score - sums[node]).exp();
                weights.push(weight);
            }
            let Some(chosen) = choose(&weights) else { return Err(no_weights(alpha)) };
            node = before[chosen];
            let Some(id) = self.nodes[node].id else { break };
            path.push((id, self.nodes[node].span.clone()));
        }
        path.reverse();
        Ok(path)
    }

    /// Returns the logarithm of the total weight of all paths to each node, summed as in
    /// `tokenizers`.
    fn forward(&self, alpha: f64) -> Result<Vec<f64>> {
        let mut sums = vec![0.0; self.nodes.len()];
        for (rights, lefts) in self.begins.iter().zip(&self.ends) {
            for &right in rights {
                poll(lefts.len())?;
                for &left in lefts {
                    let more = alpha * (self.nodes[left].score + sums[left]);
                    let is_first = self.nodes[left].id == self.nodes[lefts[0]].id;
                    sums[right] = if is_first { more } else { log_sum(sums[right], more) };
                }
            }
        }
        Ok(sums)
    }

    /// Samples one of the `count` best paths, with the scores multiplied by `alpha`.
    pub(crate) fn sample_best(
        &mut self,
        count: usize,
        alpha: f64,
    ) -> Result<Vec<(u32, Range<usize>)>> {
        self.find_best()?;
        let ways = if count == 1 { vec![self.best_way()] } else { self.best_ways(count)? };
        let mut weights = Vec::with_capacity(ways.len());
        for way in &ways {
            let score: f64 = way.iter().map(|&node| self.nodes[node].score).sum();
            weights.push((alpha * score).exp());
        }
        let chosen = choose(&weights).unwrap_or(0);
        let Some(way) = ways.get(chosen) else { return Ok(Vec::new()) };
        let nodes = way.iter().map(|&node| &self.nodes[node]);
        Ok(nodes.filter_map(|node| Some((node.id?, node.span.clone()))).collect())
    }

    /// Finds the best path to each node.
    fn find_best(&mut self) -> Result<()> {
        for place in 0..self.begins.len() {
            for &right in &self.begins[place] {
                poll(self.ends[place].len())?;
                let (mut best, mut before) = (0.0, NOBODY);
                for &left in &self.ends[place] {
                    let score = self.nodes[left].best + self.nodes[right].score;
                    if before == NOBODY || score > best {
                        (best, before) = (score, left);
                    }
                }
                (self.nodes[right].best, self.nodes[right].before) = (best, before);
            }
        }
        Ok(())
    }

    fn best_way(&self) -> Vec<usize> {
        let (mut way, mut node) = (Vec::new(), self.nodes[END].before);
        while node != BEGINNING && node != NOBODY {
            way.push(node);
            node = self.nodes[node].before;
        }
        way.reverse();
        way
    }

    /// Returns the best paths, best first, by a search from the end.
    fn best_ways(&self, count: usize) -> Result<Vec<Vec<usize>>> {
        /// Maximum number of hypotheses kept at once, and the number kept after pruning.
        const MOST: usize = 100_000;
        const KEPT: usize = 512;
        let mut ways = Vec::new();
        let mut steps = vec![Step { node: END, next: NOBODY, score: 0.0 }];
        let mut agenda = BinaryHeap::from([Hypothesis { bound: 0.0, step: 0 }]);
        while let Some(Hypothesis { step, .. }) = agenda.pop() {
            poll(1)?;
            let Step { node, score, .. } = steps[step];
            if node == BEGINNING {
                ways.push(way_from(&steps, step));
                if ways.len() == count {
                    break;
                }
                continue;
            }
            for &left in &self.ends[self.nodes[node].span.start] {
                let bound = self.nodes[left].best + score;
                let more = Step { node: left, next: step, score: score + self.nodes[left].score };
                agenda.push(Hypothesis { bound, step: steps.len() });
                steps.push(more);
            }
            if agenda.len() > MOST {
                let kept = KEPT.min(count.saturating_mul(10));
                agenda = std::iter::from_fn(|| agenda.pop()).take(kept).collect::<Vec<_>>().into();
            }
        }
        Ok(ways)
    }
}

/// A node on a path to the end.
#[derive(Debug, Clone, Copy)]
struct Step {
    node: usize,
    /// Index of the next step; [`NOBODY`] at the end.
    next: usize,
    /// Score of the path from the node to the end.
    score: f64,
}

/// Returns the nodes between the beginning, at `step`, and the end.
fn way_from(steps: &[Step], step: usize) -> Vec<usize> {
    let (mut way, mut step) = (Vec::new(), steps[step].next);
    while step != NOBODY && steps[step].next != NOBODY {
        way.push(steps[step].node);
        step = steps[step].next;
    }
    way
}

/// A path from a node to the end, with the best possible score of a whole path through the node.
#[derive(Debug)]
struct Hypothesis {
    bound: f64,
    step: usize,
}

impl Ord for Hypothesis {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound).then(other.step.cmp(&self.step))
    }
}

impl PartialOrd for Hypothesis {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Hypothesis {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Hypothesis {}

/// Returns the logarithm of the sum of two numbers given by their logarithms.
fn log_sum(a: f64, b: f64) -> f64 {
    let (least, most) = if a > b { (b, a) } else { (a, b) };
    if most > least + MOST_DIFFERENCE { most } else { most + ((least - most).exp() + 1.0).ln() }
}

/// Samples an index by weight; `None` if the weights are not a distribution.
fn choose(weights: &[f64]) -> Option<usize> {
    let total: f64 = weights.iter().sum();
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    let mut rest = next_f64() * total;
    let is_chosen = |&weight: &f64| {
        rest -= weight;
        rest < 0.0
    };
    weights.iter().position(is_chosen).or(weights.len().checked_sub(1))
}

fn no_weights(alpha: f64) -> Error {
    Error::Invalid(format!("model.alpha: with {alpha}, the scores give no probabilities"))
}
