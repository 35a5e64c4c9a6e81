//! Looks up the text between two spaces as it is, with the space before it: normalizer, pre-tokenizer
//! and model see only what the cache does not know.
//!
//! That works where white space separates words whatever is around it, and becomes no part of a token,
//! as in BERT's files. The model's cache has pieces as well, of which none begins with white space.

use bpe_core::lookup::Resolve;
use bpe_core::memory::push;
use bpe_core::polling::poll;
use bpe_core::split::Piece;
use memchr::memchr3_iter;

use crate::error::Result;
use crate::normalize::Normalizer;
use crate::tokenizer::Tokenizer;

/// The chunks that are looked up at once.
const BATCH: usize = 4096;

/// Finds the ids of chunks that are not cached.
struct Unknown<'a>(&'a Tokenizer);

impl Resolve for Unknown<'_> {
    fn resolve(&self, chunk: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        poll(chunk.len())?;
        // Chunks are cut at ASCII characters.
        let Ok(chunk) = std::str::from_utf8(chunk) else { return Ok(()) };
        let text = match self.0.normalizer() {
            Some(normalizer) => normalizer.apply(chunk.into())?,
            None => chunk.into(),
        };
        self.0.model().encode_chunk(&text, self.0.split(), ids)
    }
}

impl Tokenizer {
    /// Whether the text between two spaces can be looked up as it is.
    pub(crate) fn has_chunks(&self) -> bool {
        self.split().drops_spaces()
            && self.model().takes_words()
            && !self.added().has_normalized()
            && self.normalizer().is_none_or(Normalizer::keeps_spaces)
    }

    /// Appends the ids of a run, which is not normalized.
    pub(crate) fn append_chunks(&self, run: &str, ids: &mut Vec<u32>) -> Result<()> {
        let mut chunks = Vec::new();
        let pool = self.model().workspaces();
        let mut start = 0;
        for end in memchr3_iter(b' ', b'\n', b'\t', run.as_bytes()).chain([run.len()]) {
            // White space alone has no ids.
            if start < end && !(end == start + 1 && is_space(run.as_bytes()[start])) {
                push(&mut chunks, Piece { start, end })?;
            }
            start = end;
            if chunks.len() == BATCH || end == run.len() {
                self.append_first(run, &mut chunks, ids)?;
                pool.encode_pieces(&Unknown(self), run, &chunks, ids)?;
                chunks.clear();
            }
        }
        Ok(())
    }

    /// Takes a chunk that begins with no white space, which only a run can: it could be a piece.
    fn append_first(&self, run: &str, chunks: &mut Vec<Piece>, ids: &mut Vec<u32>) -> Result<()> {
        match chunks.first() {
            Some(&Piece { start: 0, end }) if !is_space(run.as_bytes()[0]) => {
                chunks.remove(0);
                Unknown(self).resolve(&run.as_bytes()[..end], ids)
            }
            _ => Ok(()),
        }
    }

    /// The first place from `near` on between a character and the white space after it.
    pub(crate) fn chunk_end(run: &str, near: usize) -> Option<usize> {
        let near = near.max(1);
        let rest = run.as_bytes().get(near..)?;
        memchr3_iter(b' ', b'\n', b'\t', rest)
            .map(|at| near + at)
            .find(|&at| run[..at].chars().next_back().is_some_and(|c| !c.is_whitespace()))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t')
}
