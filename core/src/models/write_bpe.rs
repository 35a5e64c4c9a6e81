//! Writes models with a list of merges, and exports their lists to rebuild them.

use serde::ser::{Serialize, SerializeSeq, Serializer};

use super::Questions;
use super::header::Header;
use super::token_lists::{MergeList, TokenList};
use crate::error::Result;

/// A model with a list of merges.
pub(super) trait Merging: Questions {
    fn header(&self) -> &Header;

    /// Calls `found` with every merge, in order, until `found` fails.
    fn each_merge<E>(
        &self,
        found: impl FnMut(&str, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E>;

    /// Returns the lists of a file, to rebuild the model.
    fn to_lists(&self) -> Result<(TokenList, MergeList)> {
        let (mut tokens, mut merges) = (TokenList::default(), MergeList::default());
        self.vocab().iter().for_each(|(text, id)| tokens.push(text, *id));
        self.each_merge(|left, right| {
            merges.push(left, right);
            Ok::<_, crate::Error>(())
        })?;
        Ok((tokens, merges))
    }
}

/// A [`Merging`] model as written to a file.
#[derive(serde::Serialize)]
struct Written<'a, M: Merging> {
    r#type: &'static str,
    #[serde(flatten)]
    header: &'a Header,
    #[serde(serialize_with = "write_vocab")]
    vocab: &'a M,
    #[serde(serialize_with = "write_merges")]
    merges: &'a M,
}

pub(super) fn write<S: Serializer>(
    model: &impl Merging,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let header = model.header();
    Written { r#type: "BPE", header, vocab: model, merges: model }.serialize(serializer)
}

fn write_vocab<S: Serializer>(
    model: &&impl Merging,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(model.vocab())
}

fn write_merges<S: Serializer>(
    model: &&impl Merging,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let mut merges = serializer.serialize_seq(None)?;
    model.each_merge(|left, right| merges.serialize_element(&(left, right)))?;
    merges.end()
}
