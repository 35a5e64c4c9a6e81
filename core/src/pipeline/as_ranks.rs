//! Converts a file to the pipeline of ranks with the same ids, or says why there is none.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::direct::Direct;
use crate::normalize::Normalization;
use crate::{SpecialTokens, Splitter};

use crate::components::added::AddedToken;
use crate::components::spec::Normalizer;
use crate::error::{Error, Result};
use crate::pipeline::assembly::Pipeline;

impl Pipeline {
    /// Returns the pipeline of ranks that a file describes, sharing the vocabulary; a pipeline of
    /// ranks returns a copy of itself.
    ///
    /// Added tokens become special tokens. A pipeline of ranks omits the ids that the
    /// post-processor adds. With `any_flags`, flags of added tokens are ignored, and added tokens
    /// that merging makes under the same id are omitted: for programs that need only ranks, pattern
    /// and ids.
    ///
    /// Fails with [`Error::Unsupported`], which names the part of the file that ranks cannot
    /// express.
    pub fn as_ranks(&self, any_flags: bool) -> Result<Self> {
        if self.direct().is_some() {
            return Ok(self.clone());
        }
        let vocabulary = self.model().ranks()?;
        let no_pattern = || refused("pre_tokenizer", "a chain that is not one published pattern");
        let pattern = self.pattern().ok_or_else(no_pattern)?;
        let normalization = form_of(self.normalizer_spec())?;
        let added = self.added_tokens_by_id();
        if !any_flags {
            check_turns(added.iter().map(|(_, token)| *token))?;
        }
        let mut special = Vec::new();
        for (place, (id, token)) in added.into_iter().enumerate() {
            let path = format!("added_tokens[{place}]");
            let name = &token.content;
            let made = vocabulary.rank(name.as_bytes()).map(|rank| vocabulary.id(rank));
            if any_flags && made == Some(id) {
                continue;
            }
            if !any_flags {
                if let Some((flag, value)) = flag_of_files(token, normalization)? {
                    let what = format!("{value}, as of '{name}',");
                    return Err(refused(&format!("{path}.{flag}"), &what));
                }
                if made.is_some() {
                    let what = format!("the special token '{name}', which merging makes as well,");
                    return Err(refused(&path, &what));
                }
            }
            special.push((name.clone(), id));
        }
        let special_tokens = SpecialTokens::new(special.iter().cloned())?;
        let direct = Direct::new(vocabulary.clone(), Splitter::new(pattern)?, special_tokens)?;
        let direct = direct.with_normalization(normalization);
        Ok(Self::of_direct(Arc::new(direct), special))
    }
}

fn refused(path: &str, what: &str) -> Error {
    Error::refused(path, format!("{what} cannot be part of an Encoding"))
}

fn form_of(normalizer: Option<&Normalizer>) -> Result<Normalization> {
    let mut parts = normalizer.map_or(&[][..], std::slice::from_ref);
    while let [Normalizer::Sequence { normalizers }] = parts {
        parts = normalizers;
    }
    match parts {
        [] => Ok(Normalization::None),
        [Normalizer::NFC] => Ok(Normalization::Nfc),
        parts => {
            let kinds: Vec<String> = parts.iter().map(kind_of).collect();
            Err(refused("normalizer", &kinds.join(", ")))
        }
    }
}

fn kind_of(normalizer: &Normalizer) -> String {
    let json = serde_json::to_value(normalizer).unwrap_or_default();
    json["type"].as_str().unwrap_or_default().to_owned()
}

/// Returns the name and value of a flag of an added token that pipelines of ranks do not support.
fn flag_of_files(
    token: &AddedToken,
    normalization: Normalization,
) -> Result<Option<(&'static str, &'static str)>> {
    let flags =
        [("single_word", token.single_word), ("lstrip", token.lstrip), ("rstrip", token.rstrip)];
    if let Some((flag, _)) = flags.into_iter().find(|(_, is_set)| *is_set) {
        return Ok(Some((flag, "true")));
    }
    // Pipelines of ranks normalize the whole text and then search for special tokens.
    let is_found = normalization == Normalization::None
        || token.normalized && normalization.apply(&token.content)? == token.content;
    Ok((!is_found).then_some(("normalized", "false under a normalizer")))
}

/// Fails if a name is searched for before another name that would win in a joint search. Names with
/// `normalized` are searched for second.
fn check_turns<'a>(tokens: impl Iterator<Item = &'a AddedToken>) -> Result<()> {
    let (second, first): (Vec<_>, Vec<_>) = tokens.partition(|token| token.normalized);
    let names = |tokens: Vec<&'a AddedToken>| -> Vec<&'a str> {
        tokens.into_iter().map(|token| &*token.content).collect()
    };
    let (first, second) = (names(first), names(second));
    let places = |name: &'a str| name.char_indices().map(|(at, _)| at);
    let beginnings: BTreeSet<&str> =
        first.iter().flat_map(|name| places(name).skip(1).map(|at| &name[..at])).collect();
    let ends: BTreeSet<&str> =
        second.iter().flat_map(|name| places(name).map(|at| &name[at..])).collect();
    let inside = |name: &&&str| second.iter().any(|other| other.contains(**name));
    let overlap = beginnings.intersection(&ends).next().copied();
    match overlap.or_else(|| first.iter().find(inside).copied()) {
        None => Ok(()),
        Some(part) => {
            let what = format!("names that overlap by '{part}' and differ in normalized");
            Err(refused("added_tokens", &what))
        }
    }
}
