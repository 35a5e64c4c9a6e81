//! Audits each token of an encoding: whether it is text, whether merging reaches it, whether the
//! splitter ever yields it as one piece, and whether its text encodes back to it.

use std::ops::ControlFlow;

use crate::direct::Direct;
use crate::error::Result;
use crate::merge;
use crate::request::Request;
use crate::special_tokens::Selection;
use crate::split::{BATCH, Batch, Piece, Splitter};
use crate::threads::{cores, in_order};
use crate::vocabulary::Vocabulary;

/// Relation of a token's bytes to UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Utf8 {
    /// Whole characters.
    Valid,
    /// Begins at a character boundary and ends inside a character: the text continues in the next
    /// token.
    Prefix,
    /// Begins inside a character and ends at a character boundary.
    Suffix,
    /// Begins and ends inside a character, or inside two different characters.
    Middle,
    /// Bytes that no valid text contains.
    Nonsense,
}

/// Whether merging a token's bytes gives the token, and if not, why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merging {
    /// Merging gives the token.
    Reached,
    /// No two tokens of the vocabulary concatenate to the token.
    NoParts,
    /// Two tokens concatenate to the token, but each such pair contains an unreachable token.
    PartsUnreached,
    /// Merges with lower ranks combine the bytes differently.
    Blocked,
    /// Merging leaves a byte that is not a token.
    MissingByte,
}

/// Whether the splitter yields a token as one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// Never: the token is not valid UTF-8, and every piece is.
    NotText,
    /// Yes: on its own, or between other text.
    Yes,
    /// Never as a whole piece, but a longer piece contains it and is encoded with it.
    OnlyInside,
    /// Neither as a piece nor inside a piece.
    Never,
}

/// Result of encoding a token's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundTrip {
    /// The token itself.
    Ok,
    /// The token itself, which is special.
    OkSpecial,
    /// A different token.
    UnreachableSingleToken,
    /// Several tokens.
    UnreachableMultiToken,
    /// Not the token; its text looks like a special token: `<...>` or `[...]`.
    UnreachableSpecial,
    /// Not the token; its bytes are not valid UTF-8.
    Undecodeable,
}

/// Findings about one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenAudit {
    /// Class of the token's bytes.
    pub utf8: Utf8,
    /// True if the token overlaps several characters and cuts at least one.
    pub crosses: bool,
    /// Result of merging the token's bytes.
    pub merging: Merging,
    /// Ids left after merging, unless merging gives the token.
    pub merged: Vec<u32>,
    /// Whether the splitter yields the token as one piece.
    pub whole: Whole,
    /// Result of encoding the token's text.
    pub round_trip: RoundTrip,
    /// Ids of the token's text if it does not round-trip; empty if it is not text.
    pub encoded: Vec<u32>,
}

/// Returns the class of `bytes`, and whether they cross a character boundary.
pub fn utf8(bytes: &[u8]) -> (Utf8, bool) {
    let is_inner = |byte: &u8| (0x80..0xc0).contains(byte);
    let inner = bytes.iter().take_while(|byte| is_inner(byte)).count();
    let rest = &bytes[inner..];
    let (text, cut) = match std::str::from_utf8(rest) {
        Ok(text) => (text.len(), false),
        Err(error) if error.error_len().is_none() => (error.valid_up_to(), true),
        Err(_) => return (Utf8::Nonsense, false),
    };
    let several = usize::from(inner > 0) + usize::from(text > 0) + usize::from(cut) > 1;
    match (inner, cut) {
        (0, false) => (Utf8::Valid, false),
        (0, true) => (Utf8::Prefix, several),
        (4.., _) => (Utf8::Nonsense, false),
        // One or two continuation bytes may be the middle of a character; three are its end.
        (_, false) => (Utf8::Suffix, several),
        (_, true) => (Utf8::Middle, several),
    }
}

/// Number of tokens that a thread audits at a time.
const TOKENS_PER_SHARE: usize = 2048;

/// Audits every token of `encoding`, on all cores. Returns the findings in the order of ranks.
/// Calls `progress` with the number of audited tokens; on `Break`, returns `None`.
pub fn audit(
    encoding: &Direct,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Option<Vec<TokenAudit>>> {
    let total = encoding.vocabulary().len();
    let work = |share: usize, audits: &mut Option<Result<Vec<TokenAudit>>>| {
        let ranks = share * TOKENS_PER_SHARE..total.min((share + 1) * TOKENS_PER_SHARE);
        *audits = Some(ranks.map(|rank| audit_token(encoding, rank as u32)).collect());
    };
    let mut all = Vec::new();
    // An error of `None` means that `progress` stopped the work.
    let take = |audits: &Option<Result<Vec<TokenAudit>>>| {
        if let Some(audits) = audits {
            let audits = audits.as_ref().map_err(|error| Some(error.clone()))?;
            all.extend_from_slice(audits);
        }
        if progress(all.len()).is_break() { Err(None) } else { Ok(()) }
    };
    let aside = |job: &mut (dyn FnMut() + Send)| {
        job();
        Ok(())
    };
    match in_order(total.div_ceil(TOKENS_PER_SHARE), cores(), work, aside, take) {
        Ok(()) => Ok(Some(all)),
        Err(None) => Ok(None),
        Err(Some(error)) => Err(error),
    }
}

/// Returns the ids left after merging `bytes`, without splitting the bytes or looking them up as a
/// whole; `None` if a remaining byte is not a token.
///
/// ```
/// use bpe_core::{Vocabulary, audit::merge_alone};
///
/// let tokens = vec![(b"a".to_vec(), 0), (b"b".to_vec(), 1), (b"ab".to_vec(), 2)];
/// let vocabulary = Vocabulary::build(tokens)?;
/// assert_eq!(merge_alone(&vocabulary, b"bab"), Some(vec![1, 2]));
/// assert_eq!(merge_alone(&vocabulary, b"xab"), None);
/// # Ok::<(), bpe_core::Error>(())
/// ```
pub fn merge_alone(vocabulary: &Vocabulary, bytes: &[u8]) -> Option<Vec<u32>> {
    let mut parts = Vec::new();
    merge::merge(vocabulary, bytes, &mut parts).ok()?;
    let id = |part| ((part as usize) < vocabulary.len()).then(|| vocabulary.id(part));
    parts.into_iter().map(id).collect()
}

fn audit_token(encoding: &Direct, rank: u32) -> Result<TokenAudit> {
    let vocabulary = encoding.vocabulary();
    let bytes = vocabulary.token(rank);
    let (utf8, crosses) = utf8(bytes);
    let (merging, merged) = merging(vocabulary, rank);
    let id = vocabulary.id(rank);
    let (whole, round_trip, encoded) = match std::str::from_utf8(bytes) {
        Ok(text) => {
            let whole = whole(encoding, text, id)?;
            let mut encoded = Vec::new();
            // If a byte is missing, there are no ids, and the text cannot encode back to the token.
            let request = Request::allowing(Selection::All);
            if encoding.encode(text, &request, &mut encoded).is_err() {
                encoded.clear();
            }
            let class = round_trip(text, id, &encoded);
            if class == RoundTrip::Ok {
                encoded.clear();
            }
            (whole, class, encoded)
        }
        Err(_) => {
            let text = String::from_utf8_lossy(bytes);
            let class = if looks_special(&text) {
                RoundTrip::UnreachableSpecial
            } else {
                RoundTrip::Undecodeable
            };
            (Whole::NotText, class, Vec::new())
        }
    };
    Ok(TokenAudit { utf8, crosses, merging, merged, whole, round_trip, encoded })
}

/// Merges the bytes of a token. Returns the ids left, unless merging gives the token.
fn merging(vocabulary: &Vocabulary, rank: u32) -> (Merging, Vec<u32>) {
    if vocabulary.is_reachable(rank) {
        return (Merging::Reached, Vec::new());
    }
    let bytes = vocabulary.token(rank);
    let Some(merged) = merge_alone(vocabulary, bytes) else {
        return (Merging::MissingByte, Vec::new());
    };
    let mut reason = Merging::NoParts;
    for cut in 1..bytes.len() {
        let (left, right) = bytes.split_at(cut);
        if let (Some(left), Some(right)) = (vocabulary.rank(left), vocabulary.rank(right)) {
            if vocabulary.is_reachable(left) && vocabulary.is_reachable(right) {
                return (Merging::Blocked, merged);
            }
            reason = Merging::PartsUnreached;
        }
    }
    (reason, merged)
}

fn round_trip(text: &str, id: u32, encoded: &[u32]) -> RoundTrip {
    if encoded == [id] {
        RoundTrip::Ok
    } else if looks_special(text) {
        RoundTrip::UnreachableSpecial
    } else if text.contains('\u{fffd}') {
        RoundTrip::Undecodeable
    } else if encoded.len() == 1 {
        RoundTrip::UnreachableSingleToken
    } else {
        RoundTrip::UnreachableMultiToken
    }
}

/// Returns true for `<name>` and `[name]`.
fn looks_special(text: &str) -> bool {
    text.chars().count() >= 3
        && text.starts_with(['<', '['])
        && text.ends_with(['>', ']'])
        && text.chars().any(char::is_alphabetic)
}

/// Neighbors to try around a token that is split on its own: one character of each kind that
/// patterns distinguish. The letters form a contraction; one of the two punctuation marks often
/// merges with the text after it, the other seldom.
const NEIGHBORS: [&str; 9] = ["", "s", "S", "1", " ", "\n", ".", "$", "\u{4e2d}"];

/// Determines whether a piece can be exactly `text`, and if not, whether the encoding of a longer
/// piece contains the token.
fn whole(encoding: &Direct, text: &str, id: u32) -> Result<Whole> {
    if is_piece(encoding.splitter(), text, 0, text.len())? {
        return Ok(Whole::Yes);
    }
    let mut answer = Whole::Never;
    for before in NEIGHBORS {
        for after in NEIGHBORS {
            let context = [before, text, after].concat();
            let (start, end) = (before.len(), before.len() + text.len());
            if is_piece(encoding.splitter(), &context, start, end)? {
                return Ok(Whole::Yes);
            }
            if answer == Whole::Never && is_token(encoding, &context, start, id) {
                answer = Whole::OnlyInside;
            }
        }
    }
    Ok(answer)
}

/// Returns true if `start..end` is one piece of `text`.
fn is_piece(splitter: &Splitter, text: &str, start: usize, end: usize) -> Result<bool> {
    let mut batch: Batch = [Piece::default(); BATCH];
    let mut pieces = splitter.pieces(text);
    loop {
        let count = pieces.fill(&mut batch)?;
        for piece in &batch[..count] {
            if piece.start >= start {
                return Ok(piece.start == start && piece.end == end);
            }
        }
        if count == 0 {
            return Ok(false);
        }
    }
}

/// Returns true if `text` is encoded with the token `id` at byte `start`.
fn is_token(encoding: &Direct, text: &str, start: usize, id: u32) -> bool {
    let mut ids = Vec::new();
    if encoding.encode_normal(text, &Selection::None, &mut ids).is_err() {
        return false;
    }
    let mut position = 0;
    for other in ids {
        if position == start {
            return other == id;
        }
        position += encoding.token_bytes(other).map_or(0, <[u8]>::len);
    }
    false
}
