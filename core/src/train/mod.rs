//! Learning vocabularies from text.
//!
//! | room | what it does |
//! |---|---|
//! | [`counting`] | pieces of texts, counted in a [`piece_table::PieceTable`] |
//! | [`runs`] | counts in sorted files, and their sum, for more pieces than memory holds |
//! | [`bpe`] | byte-level BPE: the most frequent pair is merged, again and again |
//! | [`extend`] | the merges that make given words one token each |
//!
//! [`bpe`] keeps its tokens in `symbols`, the pieces and the positions of their pairs in `corpus`,
//! gathers what a merge changes in `sides`, looks pairs up in `pairs` and chooses between equal ones
//! by `ties`.

pub mod bpe;
mod corpus;
pub mod counting;
pub mod extend;
mod pairs;
pub mod piece_table;
pub mod runs;
mod sides;
mod symbols;
pub mod ties;
