//! Counts the pieces of texts.

use crate::error::Result;
use crate::normalize::Normalization;
use crate::polling::poll;
use crate::special_tokens::{Selection, SpecialTokens};
use crate::split::{BATCH, Batch, Piece, Splitter};

use super::piece_table::PieceTable;

/// Cuts text into pieces and counts them.
#[derive(Debug)]
pub struct PieceCounter {
    splitter: Splitter,
    normalization: Normalization,
    /// Names that are cut out: they are in no piece, and no piece crosses them.
    special_tokens: SpecialTokens,
}

impl PieceCounter {
    /// Creates a counter from these parts.
    pub fn new(
        splitter: Splitter,
        normalization: Normalization,
        special_tokens: SpecialTokens,
    ) -> Self {
        Self { splitter, normalization, special_tokens }
    }

    /// Counts the pieces of one text into `table`.
    ///
    /// ```
    /// use bpe_core::train::{counting::PieceCounter, piece_table::PieceTable};
    /// use bpe_core::{Normalization, SpecialTokens, Splitter};
    ///
    /// let special = SpecialTokens::new([("<end>".to_owned(), 0)])?;
    /// let counter = PieceCounter::new(Splitter::new(r" ?\w+")?, Normalization::None, special);
    /// let mut table = PieceTable::default();
    /// counter.count("low low<end>low", &mut table)?;
    /// let counts: Vec<_> = table.iter().collect();
    /// assert_eq!(counts, [(&b"low"[..], 2), (b" low", 1)]);
    /// # Ok::<(), bpe_core::Error>(())
    /// ```
    pub fn count(&self, text: &str, table: &mut PieceTable) -> Result<()> {
        let text = self.normalization.apply(text)?;
        let mut position = 0;
        loop {
            let found = self.special_tokens.find_allowed(&text, position, &Selection::All);
            let end = found.as_ref().map_or(text.len(), |(found, _)| found.start);
            let mut pieces = self.splitter.pieces(&text[position..end]);
            count_batches(&text[position..end], table, |batch| pieces.fill(batch))?;
            let Some((found, _)) = found else { return Ok(()) };
            position = found.end;
        }
    }
}

/// Counts pieces of a text, batch by batch, until `fill` finds no more pieces.
pub fn count_batches(
    text: &str,
    table: &mut PieceTable,
    mut fill: impl FnMut(&mut Batch) -> Result<usize>,
) -> Result<()> {
    let mut batch = table.batch.take().unwrap_or_else(|| Box::new([Piece::default(); BATCH]));
    loop {
        let count = fill(&mut batch)?;
        if count == 0 {
            table.batch = Some(batch);
            return Ok(());
        }
        poll(batch[count - 1].end - batch[0].start)?;
        table.add_all(text.as_bytes(), &batch[..count])?;
    }
}
