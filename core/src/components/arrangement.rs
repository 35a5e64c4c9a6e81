//! Arrangements: the positions of ids that a post-processor adds around one or two sequences.

use crate::components::spec::{PostProcessor, SequenceId, TemplatePiece};

/// A part of an arrangement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowPart {
    /// Ids without text.
    Special {
        /// The ids to add.
        ids: Vec<u32>,
        type_id: u32,
    },
    /// All ids of a sequence.
    Sequence {
        /// Number of the sequence, 0 or 1.
        number: usize,
        type_id: u32,
    },
}

/// The parts of a row, in which each sequence occurs once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrangement(Vec<RowPart>);

/// Arrangements for one sequence and for two, without and with added tokens.
#[derive(Debug)]
pub(crate) struct Arrangements([Option<Arrangement>; 4]);

impl Arrangement {
    /// Returns the parts of the row, in order.
    pub fn parts(&self) -> &[RowPart] {
        &self.0
    }

    /// Whether a row has only the ids of one text, with type 0.
    pub(crate) fn is_plain(&self) -> bool {
        self.0 == [RowPart::Sequence { number: 0, type_id: 0 }]
    }

    /// Returns the numbers of ids before and after the sequences of a row.
    pub(crate) fn around(&self) -> (usize, usize) {
        let special = |part: &RowPart| match part {
            RowPart::Special { ids, .. } => Some(ids.len()),
            RowPart::Sequence { .. } => None,
        };
        let before = self.0.iter().map_while(special).sum();
        (before, self.0.iter().rev().map_while(special).sum())
    }
}

impl Arrangements {
    pub(crate) fn new(processor: Option<&PostProcessor>) -> Self {
        let of = |is_pair, add_special_tokens| {
            let parts = match processor {
                Some(processor) => processor.parts(is_pair, add_special_tokens),
                None => Some(plain(is_pair)),
            };
            parts.filter(|parts| has_each_once(parts, is_pair)).map(Arrangement)
        };
        Self([of(false, false), of(false, true), of(true, false), of(true, true)])
    }

    pub(crate) fn get(&self, is_pair: bool, add_special_tokens: bool) -> Option<&Arrangement> {
        self.0[usize::from(is_pair) * 2 + usize::from(add_special_tokens)].as_ref()
    }
}

fn sequence(number: usize, type_id: u32) -> RowPart {
    RowPart::Sequence { number, type_id }
}

/// Returns the parts of a row without added ids.
fn plain(is_pair: bool) -> Vec<RowPart> {
    let mut parts = vec![sequence(0, 0)];
    parts.extend(is_pair.then(|| sequence(1, 1)));
    parts
}

fn has_each_once(parts: &[RowPart], is_pair: bool) -> bool {
    let count = |wanted| {
        let is_wanted =
            |part: &&RowPart| matches!(part, RowPart::Sequence { number, .. } if *number == wanted);
        parts.iter().filter(is_wanted).count()
    };
    count(0) == 1 && count(1) == usize::from(is_pair)
}

impl PostProcessor {
    /// Returns the parts of a row; `None` if two steps of the post-processor change them, or a
    /// template is incomplete.
    fn parts(&self, is_pair: bool, add_special_tokens: bool) -> Option<Vec<RowPart>> {
        let special =
            |token: &(String, u32), type_id| RowPart::Special { ids: vec![token.1], type_id };
        Some(match self {
            Self::ByteLevel { .. } => plain(is_pair),
            Self::BertProcessing { .. } if !add_special_tokens => plain(is_pair),
            Self::BertProcessing { sep, cls } => {
                let mut parts = vec![special(cls, 0), sequence(0, 0), special(sep, 0)];
                if is_pair {
                    parts.extend([sequence(1, 1), special(sep, 1)]);
                }
                parts
            }
            Self::RobertaProcessing { sep, cls, .. } => {
                let parts = [special(cls, 0), sequence(0, 0), special(sep, 0)];
                let more = [special(sep, 0), sequence(1, 0), special(sep, 0)];
                let parts = parts.into_iter().chain(more.into_iter().filter(|_| is_pair));
                let is_kept =
                    |part: &RowPart| add_special_tokens || matches!(part, RowPart::Sequence { .. });
                parts.filter(is_kept).collect()
            }
            Self::TemplateProcessing { single, pair, special_tokens } => {
                let is_used = |piece: &&TemplatePiece| {
                    add_special_tokens || matches!(piece, TemplatePiece::Sequence { .. })
                };
                let part = |piece: &TemplatePiece| match piece {
                    TemplatePiece::Sequence { id, type_id } => {
                        Some(sequence(usize::from(*id == SequenceId::B), *type_id))
                    }
                    TemplatePiece::SpecialToken { id, type_id } => {
                        let token = special_tokens.get(id)?;
                        Some(RowPart::Special { ids: token.ids.clone(), type_id: *type_id })
                    }
                };
                let template = if is_pair { pair } else { single };
                template.iter().filter(is_used).map(part).collect::<Option<_>>()?
            }
            Self::Sequence { processors } => {
                let mut others =
                    processors.iter().filter(|it| !matches!(it, Self::ByteLevel { .. }));
                let parts = match others.next() {
                    Some(only) => only.parts(is_pair, add_special_tokens)?,
                    None => plain(is_pair),
                };
                return others.next().is_none().then_some(parts);
            }
        })
    }
}
