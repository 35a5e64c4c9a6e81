//! Learns vocabularies from text.
//!
//! | module | purpose |
//! |---|---|
//! | [`counting`] | counts the pieces of texts in a [`piece_table::PieceTable`] |
//! | [`count_files`] | sorted files of counts, for more pieces than memory holds |
//! | [`bpe`] | trains byte-level BPE: repeatedly merges the most frequent pair |
//! | [`characters`] | trains BPE over characters, WordPiece and vocabularies of whole words |
//! | [`unigram`] | trains Unigram: drops the pieces whose loss costs the least |
//! | [`extend`] | learns the merges that make given words one token each |
//!
//! [`bpe`] keeps its tokens in `symbols`, the pieces and the positions of their pairs in `corpus`,
//! collects the changes of a merge in `sides`, and looks pairs up in `pairs`.

pub mod bpe;
pub mod characters;
mod corpus;
pub mod count_files;
pub mod counting;
pub mod extend;
mod pairs;
pub mod piece_table;
mod sides;
mod symbols;
pub mod unigram;
