//! What becomes of each token of an encoding: is it text, does merging reach it, does the
//! pre-tokeniser ever hand it over whole, and does its text give the token back?

use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc;
use std::thread;

use crate::encoding::Encoding;
use crate::error::Result;
use crate::merge;
use crate::request::Request;
use crate::special_tokens::Selection;
use crate::split::{BATCH, Batch, Piece, Splitter};
use crate::vocabulary::Vocabulary;

/// How a token's bytes stand to UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Utf8 {
    /// Whole characters.
    Valid,
    /// Ends inside a character, and begins at one: text that goes on in the next token.
    Prefix,
    /// Begins inside a character, and ends at the end of one.
    Suffix,
    /// Begins and ends inside a character, or two.
    Middle,
    /// Part of no valid text.
    Nonsense,
}

/// Why merging does not give a token back from its own bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merging {
    /// It does.
    Reached,
    /// No two tokens of the vocabulary make it.
    NoParts,
    /// Two tokens make it, but in each such pair one is out of reach itself.
    PartsUnreached,
    /// Merges with lower ranks take its bytes apart in another way.
    Blocked,
    /// Merging stops with a byte that is no token.
    MissingByte,
}

/// Whether the pre-tokeniser hands a token over as one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// It is no valid UTF-8, and pieces are.
    NotText,
    /// Alone, or between other text.
    Yes,
    /// Never as a piece of its own, but a longer piece holds it and is encoded with it.
    OnlyInside,
    /// Neither as a piece nor inside one.
    Never,
}

/// Round-trip class: what encoding the text of a token gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundTrip {
    /// The token.
    Ok,
    /// The token, a special one.
    OkSpecial,
    /// Another token.
    UnreachableSingleToken,
    /// Several tokens.
    UnreachableMultiToken,
    /// Not the token, whose text looks like that of a special: `<...>` or `[...]`.
    UnreachableSpecial,
    /// Not the token, whose bytes are no valid UTF-8.
    Undecodeable,
}

/// The findings about one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenAudit {
    /// Whether its bytes are text.
    pub utf8: Utf8,
    /// Touches two characters or more, at least one of them cut.
    pub crosses: bool,
    /// What merging makes of its bytes.
    pub merging: Merging,
    /// The ids at which merging stops, when it does not reach the token.
    pub merged: Vec<u32>,
    /// Whether text can have it as one piece.
    pub whole: Whole,
    /// What its text is encoded to.
    pub round_trip: RoundTrip,
    /// The ids that its text gives, when they are not the token; empty when it has no text.
    pub encoded: Vec<u32>,
}

/// The classes of `bytes`, and whether they cross a character boundary.
///
/// ```
/// use bpe_core::audit::{Utf8, utf8};
///
/// assert_eq!(utf8("é".as_bytes()), (Utf8::Valid, false));
/// assert_eq!(utf8(b" \xc3"), (Utf8::Prefix, true));
/// assert_eq!(utf8(b"\xa9"), (Utf8::Suffix, false));
/// assert_eq!(utf8(b"\xff"), (Utf8::Nonsense, false));
/// ```
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
        // Inner bytes alone may be the end or the middle of a character: three are the end.
        (_, false) => (Utf8::Suffix, several),
        (_, true) => (Utf8::Middle, several),
    }
}

/// How many tokens a thread takes at a time.
const BLOCK: usize = 2048;

/// Looks at every token of `encoding`, on all processors; the answer is in the order of ranks.
/// `progress` is called with how many are done, and ends the work by `Break`: then the answer is
/// `None`.
pub fn audit(
    encoding: &Encoding,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Option<Vec<TokenAudit>>> {
    let total = encoding.vocabulary().len();
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let work = |sender: mpsc::Sender<(usize, Result<Vec<TokenAudit>>)>| {
        while !stopped.load(Relaxed) {
            let start = next.fetch_add(BLOCK, Relaxed);
            if start >= total {
                return;
            }
            let ranks = start..(start + BLOCK).min(total);
            let block = ranks.map(|rank| audit_token(encoding, rank as u32));
            if sender.send((start, block.collect())).is_err() {
                return;
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(total / BLOCK + 1);
    let blocks = thread::scope(|scope| {
        let spawned = (0..threads).filter(|_| {
            let sender = sender.clone();
            thread::Builder::new().spawn_scoped(scope, || work(sender)).is_ok()
        });
        if spawned.count() == 0 {
            work(sender);
        } else {
            drop(sender);
        }
        let (mut blocks, mut done) = (Vec::new(), 0);
        for (start, block) in &receiver {
            let block = block.inspect_err(|_| stopped.store(true, Relaxed))?;
            done += block.len();
            blocks.push((start, block));
            if progress(done).is_break() {
                stopped.store(true, Relaxed);
                return Ok(None);
            }
        }
        Ok(Some(blocks))
    })?;
    Ok(blocks.map(|mut blocks| {
        blocks.sort_unstable_by_key(|&(start, _)| start);
        blocks.into_iter().flat_map(|(_, block)| block).collect()
    }))
}

/// The ids at which merging `bytes` stops: no splitting, and no look at whether they are a token
/// as a whole. `None` when a byte that is no token is left.
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

fn audit_token(encoding: &Encoding, rank: u32) -> Result<TokenAudit> {
    let vocabulary = encoding.vocabulary();
    let bytes = vocabulary.token(rank);
    let (utf8, crosses) = utf8(bytes);
    let (merging, merged) = merging(vocabulary, rank);
    let id = vocabulary.id(rank);
    let (whole, round_trip, encoded) = match std::str::from_utf8(bytes) {
        Ok(text) => {
            let whole = whole(encoding, text, id)?;
            let mut encoded = Vec::new();
            // A missing byte leaves no ids: the text does not give the token back either way.
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

/// How merging ends, and the ids at which it stops when that is not the token.
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

/// `<name>` or `[name]`.
fn looks_special(text: &str) -> bool {
    text.chars().count() >= 3
        && text.starts_with(['<', '['])
        && text.ends_with(['>', ']'])
        && text.chars().any(char::is_alphabetic)
}

/// What may stand before and behind a token that is cut when it stands alone: one of each kind of
/// character that patterns tell apart. The letters are those of a contraction; of the two marks,
/// one is often merged with what follows, and one seldom.
const NEIGHBOURS: [&str; 9] = ["", "s", "S", "1", " ", "\n", ".", "$", "\u{4e2d}"];

/// Whether a piece is ever exactly `text`, or else, whether a longer one is encoded with its token.
fn whole(encoding: &Encoding, text: &str, id: u32) -> Result<Whole> {
    if is_piece(encoding.splitter(), text, 0, text.len())? {
        return Ok(Whole::Yes);
    }
    let mut answer = Whole::Never;
    for before in NEIGHBOURS {
        for behind in NEIGHBOURS {
            let context = [before, text, behind].concat();
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

/// Whether `start..end` is one piece of `text`.
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

/// Whether `text` is encoded with the token `id` at byte `start`.
fn is_token(encoding: &Encoding, text: &str, start: usize, id: u32) -> bool {
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
