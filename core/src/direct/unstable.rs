//! Finds the tokens that the end of a text may become as more is typed.

use std::collections::BTreeSet;

use crate::direct::Direct;
use crate::error::{Error, Result};
use crate::memory::reserve;
use crate::polling::poll;
use crate::request::Request;
use crate::sink::Pieces;
use crate::special_tokens::Selection;
use crate::split::{BATCH, Batch, Piece};

impl Direct {
    /// Returns the tokens of `text` that stay the same whatever is written after it, and the
    /// possible ids of the rest: sequences of ids that cover the rest and end with a token that
    /// reaches its end or extends beyond it. Text that ends with an allowed special token has no
    /// rest.
    pub fn encode_with_unstable(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, BTreeSet<Vec<u32>>)> {
        let text = &*self.prepare(text, request)?;
        let mut walk = Pieces::default();
        self.encode_normal(text, &request.allowed, &mut walk)?;
        let mut stable = walk.ids;
        let ends_with_special =
            stable.last().is_some_and(|&id| self.vocabulary().rank_of_id(id).is_none());
        let Some(&(_, first)) = walk.starts.last().filter(|_| !ends_with_special) else {
            return Ok((stable, BTreeSet::new()));
        };
        let from = unstable_from(self, &stable, first);
        let rest = self.decode_bytes(&stable[from..])?;
        stable.truncate(from);
        let completions = completions(self, &rest)?;
        Ok((stable, completions))
    }

    /// Returns the ids of bytes that need not be UTF-8. Text up to the first invalid byte is encoded as
    /// ordinary text, without normalization; the rest, and the last piece before it, as one piece.
    pub fn encode_bytes(&self, bytes: &[u8]) -> Result<Vec<u32>> {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => {
                let mut ids = Vec::new();
                self.encode_normal(text, &Selection::None, &mut ids)?;
                return Ok(ids);
            }
            Err(error) => error,
        };
        let (valid, invalid) = bytes.split_at(error.valid_up_to());
        let text = std::str::from_utf8(valid).unwrap_or_default();
        let mut walk = Pieces::default();
        self.encode_normal(text, &Selection::None, &mut walk)?;
        let mut ids = walk.ids;
        let mut rest = Vec::new();
        if let Some(&(_, first)) = walk.starts.last() {
            let from = unstable_from(self, &ids, first);
            rest = self.decode_bytes(&ids[from..])?;
            ids.truncate(from);
        }
        rest.extend_from_slice(invalid);
        self.encode_piece(&rest, &mut ids)?;
        Ok(ids)
    }
}

/// Returns the index of the first of `ids` that may change when text is added: the first of the
/// last piece, or of the white space before it, since pieces of white space may grow together.
fn unstable_from(encoding: &Direct, ids: &[u32], last_piece: usize) -> usize {
    let is_space = |id: u32| {
        encoding
            .token_bytes(id)
            .is_some_and(|bytes| bytes.iter().all(|byte| matches!(byte, b' ' | b'\n' | b'\t')))
    };
    if !ids.get(last_piece).is_some_and(|&id| is_space(id)) {
        return last_piece;
    }
    ids[..last_piece].iter().rposition(|&id| !is_space(id)).map_or(0, |place| place + 1)
}

/// Returns the sequences of ids that `rest` may become a prefix of.
fn completions(encoding: &Direct, rest: &[u8]) -> Result<BTreeSet<Vec<u32>>> {
    let (vocabulary, tokens) = (encoding.vocabulary(), encoding.sorted_tokens());
    let single = tokens.starting_with(vocabulary, rest).iter();
    let mut found: BTreeSet<Vec<u32>> = single.map(|&rank| vec![vocabulary.id(rank)]).collect();

    // A token may straddle the end of `rest` from every position in it. No token is longer than
    // the longest, so positions further back cannot.
    let first = rest.len().saturating_sub(tokens.longest()).max(1);
    let mut endings = Endings::new(encoding, rest)?;
    let mut text = Vec::new();
    for cut in first..rest.len() {
        for &rank in tokens.starting_with(vocabulary, &rest[cut..]) {
            text.clear();
            text.extend_from_slice(&rest[..cut]);
            text.extend_from_slice(vocabulary.token(rank));
            poll(text.len())?;
            found.insert(covering(encoding, endings.encode(&text, cut)?, rest.len())?);
        }
    }

    // White space at the end may be cut off by what follows it: `\s+(?!\S)`.
    let last = rest.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty());
    if let Some(space) = last.and_then(|chunk| chunk.valid().chars().next_back())
        && space.is_whitespace()
        && rest.len() > space.len_utf8()
    {
        let (before, space) = rest.split_at(rest.len() - space.len_utf8());
        let mut ids = Vec::new();
        encoding.encode_piece(before, &mut ids)?;
        encoding.encode_piece(space, &mut ids)?;
        found.insert(ids);
    }
    Ok(found)
}

/// Encodes texts with a common beginning and different ends; the long beginning is encoded once.
struct Endings<'a> {
    encoding: &'a Direct,
    /// The ids of the common text, where it is valid UTF-8.
    as_text: Option<Beginning>,
    /// Its ids as one piece: text that is not valid UTF-8 is encoded this way.
    as_piece: Option<Beginning>,
    batch: Box<Batch>,
}

/// Ids of a text.
struct Beginning {
    ids: Vec<u32>,
    /// The start of each id.
    positions: Vec<usize>,
    /// The start of each piece.
    pieces: Vec<usize>,
}

impl<'a> Endings<'a> {
    /// Texts shorter than this are encoded as a whole each time.
    const REUSED_FROM: usize = 128;

    /// Ids that start this many bytes or more before the position where texts part seldom depend on
    /// the text after it; that is checked, and the next distance is tried if they do.
    const CONTEXTS: [usize; 3] = [48, 160, 480];

    fn new(encoding: &'a Direct, common: &[u8]) -> Result<Self> {
        let (mut as_text, mut as_piece) = (None, None);
        if common.len() >= Self::REUSED_FROM && encoding.vocabulary().is_ordered() {
            if let Ok(text) = std::str::from_utf8(common) {
                let mut walk = Pieces::default();
                encoding.encode_normal(text, &Selection::None, &mut walk)?;
                let pieces = walk.starts.iter().map(|&(start, _)| start).collect::<Vec<_>>();
                as_text = Beginning::new(encoding, walk.ids, pieces, common.len())?;
            }
            let mut ids = Vec::new();
            encoding.encode_piece(common, &mut ids)?;
            as_piece = Beginning::new(encoding, ids, vec![0], common.len())?;
        }
        Ok(Self { encoding, as_text, as_piece, batch: Box::new([Piece::default(); BATCH]) })
    }

    /// Returns the ids of `text`, which is the same as the common text up to byte `cut`.
    fn encode(&mut self, text: &[u8], cut: usize) -> Result<Vec<u32>> {
        if let Some(ids) = self.encode_end(text, cut)? {
            return Ok(ids);
        }
        let mut ids = Vec::new();
        match std::str::from_utf8(text) {
            Ok(text) => self.encoding.encode_normal(text, &Selection::None, &mut ids)?,
            Err(_) => self.encoding.encode_piece(text, &mut ids)?,
        }
        Ok(ids)
    }

    /// Encodes only from some id of the common text on. `None` if that is not certain to be right.
    ///
    /// Two sequences of ids, each the encoding of its bytes, are together the encoding of all of
    /// the bytes if the last id of the first and the first id of the second are neighbors in some
    /// encoding (in ordered vocabularies, and within a piece): here, in the common text's.
    fn encode_end(&mut self, text: &[u8], cut: usize) -> Result<Option<Vec<u32>>> {
        let whole = [Piece { start: 0, end: text.len() }];
        let (beginning, pieces) = match std::str::from_utf8(text) {
            Ok(text) => {
                let Some(beginning) = &self.as_text else { return Ok(None) };
                let count = self.encoding.splitter().pieces(text).fill(&mut self.batch)?;
                if count == BATCH {
                    return Ok(None);
                }
                (beginning, &self.batch[..count])
            }
            Err(_) => {
                let Some(beginning) = &self.as_piece else { return Ok(None) };
                (beginning, &whole[..])
            }
        };
        let starts = pieces.iter().map(|piece| piece.start).take(beginning.pieces.len());
        if !starts.eq(beginning.pieces.iter().copied()) {
            return Ok(None);
        }
        let (last, following) =
            (pieces[beginning.pieces.len() - 1], &pieces[beginning.pieces.len()..]);
        for context in Self::CONTEXTS {
            let Some(anchor) = beginning.anchor(cut.saturating_sub(context)) else { break };
            let from = beginning.positions[anchor];
            if last.end <= from {
                continue;
            }
            let mut ids = Vec::new();
            ids.extend_from_slice(&beginning.ids[..anchor]);
            self.encoding.encode_piece(&text[from..last.end], &mut ids)?;
            if ids[anchor] != beginning.ids[anchor] {
                continue;
            }
            for piece in following {
                self.encoding.encode_piece(&text[piece.start..piece.end], &mut ids)?;
            }
            return Ok(Some(ids));
        }
        Ok(None)
    }
}

impl Beginning {
    /// Creates a beginning; `None` if the ids do not cover the `length` bytes of the text: a
    /// pattern may skip some.
    fn new(
        encoding: &Direct,
        ids: Vec<u32>,
        pieces: Vec<usize>,
        length: usize,
    ) -> Result<Option<Self>> {
        let mut positions = Vec::new();
        reserve(&mut positions, ids.len())?;
        let mut position = 0;
        for &id in &ids {
            positions.push(position);
            position += token_length(encoding, id)?;
        }
        Ok((position == length).then_some(Self { ids, positions, pieces }))
    }

    /// Returns the index of the last id that starts at or before byte `position`, inside the last
    /// piece.
    fn anchor(&self, position: usize) -> Option<usize> {
        let index = self.positions.partition_point(|&start| start <= position).checked_sub(1)?;
        (self.positions[index] > *self.pieces.last()?).then_some(index)
    }
}

fn token_length(encoding: &Direct, id: u32) -> Result<usize> {
    encoding.token_bytes(id).map(<[u8]>::len).ok_or(Error::UnknownId(id.into()))
}

/// Returns the first of `ids` that together have at least `length` bytes.
fn covering(encoding: &Direct, mut ids: Vec<u32>, length: usize) -> Result<Vec<u32>> {
    let (mut covered, mut count) = (0, 0);
    while covered < length && count < ids.len() {
        covered += token_length(encoding, ids[count])?;
        count += 1;
    }
    ids.truncate(count);
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special_tokens::SpecialTokens;
    use crate::split::Splitter;
    use crate::vocabulary::Vocabulary;

    /// Long last pieces are cheap because only their ends are encoded.
    #[test]
    fn long_beginnings_are_encoded_once() {
        let words = ["--", "----", "-/", "ab", "aab", "ba", "abab", "  "];
        let bytes = (0..=255_u8).map(|byte| vec![byte]);
        let tokens = bytes.chain(words.map(|word| word.as_bytes().to_vec()));
        let encoding = Direct::new(
            Vocabulary::build(tokens.zip(0..).collect()).unwrap(),
            Splitter::new(r"\w+|[^\w\s]+|\s+").unwrap(),
            SpecialTokens::new([]).unwrap(),
        )
        .unwrap();
        for unit in ["-", "a", "ab", "aab", " ", "-/", "的"] {
            let common = unit.repeat(4000 / unit.len());
            let mut endings = Endings::new(&encoding, common.as_bytes()).unwrap();
            for cut in (common.len() - 40..common.len()).filter(|&at| common.is_char_boundary(at)) {
                for end in ["", "-", "ab", "--", " "] {
                    let text = common[..cut].to_owned() + end;
                    let ids = endings.encode_end(text.as_bytes(), cut).unwrap();
                    let mut whole = Vec::new();
                    encoding.encode_normal(&text, &Selection::None, &mut whole).unwrap();
                    assert_eq!(ids, Some(whole), "{unit:?} {cut} {end:?}");
                }
            }
        }
    }
}
