//! Positions at which a run can be cut without changing an id.

use crate::char_boundary::ceil;

use crate::components::normalize::Normalizer;
use crate::components::split::Plan;
use crate::pipeline::assembly::Pipeline;

impl Pipeline {
    /// Returns the first position at or after byte `near` at which a run can be cut without
    /// changing an id. Whether a position is safe depends only on the characters on both sides.
    pub fn safe_cut(&self, run: &str, near: usize) -> Option<usize> {
        if self.prepends(false) { None } else { self.beginning_cut(run, near) }
    }

    /// Like [`Pipeline::safe_cut`], but the text after the cut may get different ids on its own.
    pub fn beginning_cut(&self, run: &str, mut near: usize) -> Option<usize> {
        if let Some(direct) = self.direct() {
            return direct.splitter().safe_cut(run, near);
        }
        if let Some(chunks) = self.chunks() {
            return chunks.end(run, near);
        }
        let is_pattern = matches!(self.split().plan(), Plan::Pattern { .. });
        let Some(bpe) = self.model().bpe_by_ranks().filter(|_| is_pattern) else {
            return self.cut_apart(run, near);
        };
        if self.normalizer().is_some_and(|normalizer| !Self::keeps_ascii(normalizer)) {
            return None;
        }
        let has_normalized = self.added().has_normalized();
        let is_kept = |before: u8, after: u8| {
            let is_ascii = before.is_ascii() && after.is_ascii();
            is_ascii && (!has_normalized || self.added().are_apart(before, after))
        };
        let bytes = run.as_bytes();
        loop {
            let cut = bpe.splitter().safe_cut(run, near)?;
            if self.normalizer().is_none() || is_kept(bytes[cut - 1], bytes[cut]) {
                return Some(cut);
            }
            near = cut + 1;
        }
    }

    /// Returns true if tokens depend only on a few hundred bytes around them, even in text without
    /// a safe cut.
    pub fn is_local(&self) -> bool {
        if let Some(direct) = self.direct() {
            return direct.splitter().is_family();
        }
        matches!(self.split().plan(), Plan::Pattern { .. }) && self.normalizer().is_none()
    }

    /// Whether a normalizer treats each ASCII character independently of the context.
    fn keeps_ascii(normalizer: &Normalizer) -> bool {
        match normalizer {
            Normalizer::Form(_) | Normalizer::Lowercase => true,
            Normalizer::Sequence(parts) => parts.iter().all(Self::keeps_ascii),
            _ => false,
        }
    }

    /// Implements [`Pipeline::beginning_cut`] for a model that knows which characters no token
    /// joins.
    fn cut_apart(&self, run: &str, near: usize) -> Option<usize> {
        let metaspace = match self.split().plan() {
            Plan::Metaspace(metaspace) => Some(metaspace),
            _ => None,
        };
        if self.normalizer().is_some() && self.added().has_normalized() {
            return None;
        }
        let is_apart = |before: char, after: char| {
            // Whitespace next to an added token may all belong to the token.
            if before.is_whitespace() && after.is_whitespace() && self.added().take_space {
                return Some(false);
            }
            let (mut before, mut after) = match self.normalizer() {
                Some(normalizer) => normalizer.boundary(before, after)?,
                None => (before, after),
            };
            let is_kept = match metaspace {
                Some(metaspace) => {
                    let mark = |c: char| if c == ' ' { metaspace.replacement } else { c };
                    (before, after) = (mark(before), mark(after));
                    true
                }
                None => self.split().steps().ignores([before, after]),
            };
            let is_apart = self.model().are_apart(before, after)? && is_kept;
            Some(is_apart || self.split().cuts(before, after))
        };
        let start = ceil(run, near.max(1));
        let mut before = run[..start].chars().next_back()?;
        for (at, after) in run[start..].char_indices() {
            if is_apart(before, after)? {
                return Some(start + at);
            }
            before = after;
        }
        None
    }
}
