//! Looks up the text between two spaces before normalization: normalizer, pre-tokenizer and model
//! see only text that is not in the cache.
//!
//! Requires that whitespace separates words in any context: in BERT's files whitespace is dropped,
//! and in files from SentencePiece a mark for whitespace begins each word. The model's cache then
//! holds chunks instead of pieces.

use std::cell::RefCell;

use crate::char_boundary::ceil;
use crate::lookup::Resolve;
use crate::memory::reserve_text;
use crate::once::OnceBox;
use crate::polling::poll;
use crate::split::{Permits, Piece, WordRules, WordSplitter};
use crate::train::counting::count_batches;
use crate::train::piece_table::PieceTable;
use unicode_normalization_alignments::UnicodeNormalization;

use crate::components::added::AddedTokens;
use crate::components::cut_points::{Bits, is_settled};
use crate::components::normalize::{Ends, Normalizer};
use crate::components::spec::{Metaspace, PrependScheme};
use crate::components::split::{Plan, Split};
use crate::error::Result;
use crate::models::{Model, RunPosition};

/// Cuts the runs of a tokenizer into chunks.
#[derive(Debug)]
pub(crate) struct Chunks {
    splitter: WordSplitter,
    normalizer: Normalizer,
    /// Treatment of whitespace at the ends of a run.
    ends: Ends,
    /// Whether that treatment affects whitespace inside chunks.
    has_ends: bool,
    /// Result for each ASCII byte, as in [`Singles`].
    ascii: [u8; 256],
    singles: Singles,
    /// Mark for whitespace before a piece, and whether a mark is added even without whitespace.
    mark: Option<(char, bool)>,
    /// Whether a chunk includes the whitespace before it.
    keeps_space: bool,
    /// Whether runs are cut only at U+0020, not at tabs and line ends.
    only_blank: bool,
    /// Characters next to which a run can be cut; `None` for all characters.
    permitted: Option<Box<Bits>>,
    /// Selects the words to search for added tokens; `None` without such tokens.
    names: Option<Names>,
}

/// Selects the words to search for added tokens after normalization: words with a punctuation mark
/// of such a token.
#[derive(Debug)]
struct Names {
    marks: Vec<u8>,
    /// Whether each byte is a character that may become a mark, or begins a non-ASCII character.
    bytes: [bool; 256],
    /// Characters outside ASCII that no neighbor turns into ASCII.
    others: Box<Bits>,
    /// Whether the character after a mark can rule out that the mark is in a name.
    has_pairs: bool,
}

impl Names {
    /// Creates the selection; `None` if single characters of a word cannot decide.
    fn new(added: &AddedTokens, normalizer: &Normalizer, keeps_printable: bool) -> Option<Self> {
        let (marks, are_inside) = added.marks()?;
        if normalizer.writes(&marks) {
            return None;
        }
        let bytes = std::array::from_fn(|byte| match u8::try_from(byte) {
            Ok(byte @ ..128) => may_become(normalizer, char::from(byte), &marks),
            Ok(byte) => byte >= FIRST_OF_SEVERAL,
            Err(_) => false,
        });
        let others = Box::new(Bits::new());
        Some(Self { marks, bytes, others, has_pairs: keeps_printable && are_inside })
    }

    /// Returns the position of the first character that may become a mark of a name.
    fn find(&self, text: &str, normalizer: &Normalizer, added: &AddedTokens) -> Option<usize> {
        let is_other = |character| !may_become(normalizer, character, &self.marks);
        let (bytes, mut from) = (text.as_bytes(), 0);
        loop {
            let at = from + bytes[from..].iter().position(|&it| self.bytes[usize::from(it)])?;
            let character = text[at..].chars().next()?;
            let is_none = match character.is_ascii() {
                true => self.has_pairs && is_in_no_name(&bytes[at..], added),
                false => self.others.get(character, is_other),
            };
            if !is_none {
                return Some(at);
            }
            from = at + character.len_utf8();
        }
    }
}

/// Whether the character after a mark is printable, unchanged, and follows the mark in no name.
fn is_in_no_name(text: &[u8], added: &AddedTokens) -> bool {
    let [mark, next, rest @ ..] = text else { return false };
    let is_next = |byte: &u8| byte.is_ascii_graphic() || SPACES.contains(&char::from(*byte));
    let is_kept = next.is_ascii_graphic() && rest.first().is_none_or(is_next);
    is_kept && added.are_apart(*mark, *next)
}

/// Whether a character may become one of these marks. If a normalization form joins a mark with a
/// neighbor, the decomposition of the result contains the mark.
fn may_become(normalizer: &Normalizer, character: char, marks: &[u8]) -> bool {
    let is_mark = |it: char| u8::try_from(it).is_ok_and(|byte| marks.contains(&byte));
    let has_mark = |text: &str| text.nfkd().any(|(it, _)| is_mark(it));
    let text = String::from(character);
    has_mark(&text) || normalizer.apply(text.into()).map_or(true, |made| has_mark(&made))
}

/// Smallest first byte of a multi-byte character.
const FIRST_OF_SEVERAL: u8 = 0xc2;

/// Result for each character up to U+FFFF in a chunk that is one piece; 0 if the character must go
/// through all steps. Computed for 64 characters at a time, on first use.
struct Singles(Box<[OnceBox<[u16; ROW]>]>);

const ROW: usize = 64;

impl std::fmt::Debug for Singles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Singles")
    }
}

impl Singles {
    fn new() -> Self {
        Self((0..=0xffff / ROW).map(|_| OnceBox::new()).collect())
    }

    #[inline]
    fn get(&self, character: char, find: impl Fn(char) -> Option<char>) -> Option<char> {
        let (row, place) = (character as usize / ROW, character as usize % ROW);
        let row = self.0.get(row)?.get_or_init(|| {
            let made = |code: usize| {
                let made = char::from_u32((row * ROW + code) as u32).and_then(&find)?;
                u16::try_from(made as u32).ok()
            };
            Box::new(std::array::from_fn(|code| made(code).unwrap_or(0)))
        });
        char::from_u32(row[place].into()).filter(|&made| made != '\0')
    }
}

/// Maximum length in bytes of a character up to U+FFFF, and of a mark.
const WIDEST: usize = 3;
const MARK: usize = 4;

/// Whitespace at which a run is cut.
const SPACES: [char; 4] = [' ', '\t', '\n', '\r'];

impl Chunks {
    /// Creates the chunk cutter for these components; `None` if the tokenizer must see whole runs.
    pub(crate) fn new(
        model: &Model,
        split: &Split,
        normalizer: Option<&Normalizer>,
        added: &AddedTokens,
    ) -> Option<Self> {
        if !model.takes_words() {
            return None;
        }
        let always = |metaspace: &Metaspace| {
            (metaspace.replacement, metaspace.prepend_scheme == PrependScheme::Always)
        };
        let (mark, keeps_space) = match split.plan() {
            Plan::Marked(_, metaspace) => (Some(always(metaspace)), false),
            Plan::Metaspace(metaspace) if metaspace.split && metaspace.is_local() => {
                (Some(always(metaspace)), true)
            }
            _ if split.drops_spaces() => (None, false),
            _ => return None,
        };
        let is_space = |content: &str| match keeps_space {
            true => content == " " || mark.is_some_and(|(mark, _)| content.chars().eq([mark])),
            false => content.chars().all(char::is_whitespace) && !content.is_empty(),
        };
        let whole = Normalizer::Sequence(Vec::new());
        let whole = normalizer.unwrap_or(&whole);
        let (normalizer, ends) = whole.without_ends(is_space);
        let locality = normalizer.locality()?;
        let mark_bytes = mark.map_or(Vec::new(), |(mark, _)| mark.to_string().into_bytes());
        let names = match added.has_normalized() {
            // The replacement of whitespace may be part of a name.
            true if ends.rows.iter().any(|row| row.writes(&mark_bytes)) => return None,
            true => Some(Names::new(added, &normalizer, locality.keeps_printable)?),
            false => None,
        };
        // Dropped whitespace needs no treatment at the ends.
        let has_ends = keeps_space && (ends.left || ends.right || !ends.rows.is_empty());
        let needs_permits = locality.needs_settled || has_ends;
        let [blank, controls @ ..] = SPACES.map(|space| normalizer.space(space));
        let only_blank = keeps_space && controls.iter().any(|&space| space != Some(' '));
        let are_kept = match keeps_space {
            true => blank == Some(' ') && !(only_blank && needs_permits),
            false => controls.iter().all(Option::is_some) && blank.is_some(),
        };
        let stays = |character| keeps_ends(&normalizer, character, mark);
        let has_borders = !has_ends || !locality.unsettles && ('!'..='~').all(stays);
        if !are_kept || !has_borders || keeps_space && locality.needs_dropped {
            return None;
        }
        let mut ascii = [0; 256];
        for byte in 1..128 {
            let made = single(&normalizer, split, char::from(byte)).filter(char::is_ascii);
            ascii[usize::from(byte)] = made.map_or(0, |made| made as u8);
        }
        let is_everywhere = locality.is_everywhere && !keeps_space;
        let splitter = WordSplitter::new(WordRules {
            keeps_spaces: keeps_space,
            only_blank,
            isolates_punctuation: is_everywhere && split.isolates_punctuation(),
            isolates_han: is_everywhere && locality.isolates_han,
        });
        Some(Self {
            splitter,
            normalizer: normalizer.and(if has_ends { &ends.rows } else { &[] }),
            has_ends,
            ends,
            ascii,
            singles: Singles::new(),
            mark,
            keeps_space,
            only_blank,
            permitted: needs_permits.then(|| Box::new(Bits::new())),
            names,
        })
    }

    /// Whether the normalized form of a run contains added tokens.
    pub(crate) fn has_names(&self, run: &str, added: &AddedTokens) -> Result<bool> {
        let Some(names) = &self.names else { return Ok(false) };
        let (mut start, mut has_names) = (0, false);
        let is_space = |character| self.is_space(character);
        while !has_names && let Some(at) = names.find(&run[start..], &self.normalizer, added) {
            let at = start + at;
            let first = run[start..at].rfind(is_space).map_or(start, |space| start + space + 1);
            let end = run[at..].find(is_space).map_or(run.len(), |space| at + space);
            poll(end - first)?;
            let word = self.normalizer.apply(run[first..end].into())?;
            added.each_normalized(&word, &mut |_, id| {
                has_names |= id.is_some();
                Ok(())
            })?;
            start = end;
        }
        Ok(has_names)
    }

    /// Whether a run can be cut at whitespace next to a character.
    fn permits(&self, character: char) -> bool {
        let Some(permitted) = &self.permitted else { return true };
        permitted.get(character, |character| {
            let stays = || keeps_ends(&self.normalizer, character, self.mark);
            is_settled(character) && (!self.has_ends || stays())
        })
    }

    fn is_space(&self, character: char) -> bool {
        character == ' ' || !self.only_blank && SPACES.contains(&character)
    }

    /// Writes the piece of a chunk. Returns false if the chunk must go through all steps.
    fn write_piece(&self, split: &Split, mut chunk: &str, piece: &mut String) -> Result<bool> {
        piece.clear();
        reserve_text(piece, WIDEST * chunk.len() + MARK)?;
        if let Some((mark, is_always)) = self.mark {
            let rest = match self.keeps_space {
                true => chunk.strip_prefix(|first| self.is_space(first)),
                false => None,
            };
            if rest.is_some() || is_always {
                piece.push(mark);
            }
            chunk = rest.unwrap_or(chunk);
        }
        for character in chunk.chars() {
            let made = match self.ascii.get(character as usize) {
                Some(&made @ 1..) => Some(char::from(made)),
                _ => self.single(split, character),
            };
            let Some(made) = made else { return Ok(false) };
            piece.push(made);
        }
        Ok(true)
    }

    /// Returns the result of a character in a chunk that is one piece.
    fn single(&self, split: &Split, character: char) -> Option<char> {
        self.singles.get(character, |character| single(&self.normalizer, split, character))
    }

    /// Returns a run without the stripped whitespace at its ends; `None` if only the normalized
    /// form can decide.
    fn stripped<'a>(&self, run: &'a str) -> Option<&'a str> {
        if !self.has_ends {
            return Some(run);
        }
        let mut rest = run;
        if self.ends.left {
            rest = rest.trim_start_matches(SPACES);
        }
        if self.ends.right {
            rest = rest.trim_end_matches(SPACES);
        }
        let is_permitted = |character: Option<char>| {
            character.is_none_or(|it| it.is_ascii_graphic() || self.permits(it))
        };
        let are_ends = (!self.ends.left || is_permitted(rest.chars().next()))
            && (!self.ends.right || is_permitted(rest.chars().next_back()));
        are_ends.then_some(rest)
    }

    /// Returns the first position at or after `near`, between a character and whitespace, at which
    /// a run can be cut.
    pub(crate) fn end(&self, run: &str, near: usize) -> Option<usize> {
        if self.has_ends && (self.ends.left || self.ends.right) {
            return None;
        }
        let permits = |character: char| match character.is_ascii() {
            true => character.is_ascii_graphic(),
            false => !character.is_whitespace() && self.permits(character),
        };
        let is_border = |&(at, space): &(usize, char)| {
            let after = run[at + 1..].chars().next();
            self.is_space(space)
                && run[..at].chars().next_back().is_some_and(permits)
                && after.is_none_or(|after| SPACES.contains(&after) || permits(after))
        };
        let near = ceil(run, near.max(1));
        let spaces = run.get(near..)?.match_indices(SPACES);
        let mut spaces = spaces.map(|(at, space)| (near + at, char::from(space.as_bytes()[0])));
        spaces.find(is_border).map(|(at, _)| at)
    }
}

/// Returns the normalized character, if it stays in one piece with any neighbors.
fn single(normalizer: &Normalizer, split: &Split, character: char) -> Option<char> {
    normalizer.single(character).filter(|&made| split.keeps(made))
}

/// Whether a character normalizes to text that neither begins nor ends with whitespace.
fn keeps_ends(normalizer: &Normalizer, character: char, mark: Option<(char, bool)>) -> bool {
    let is_space = |it: char| it.is_whitespace() || mark.is_some_and(|(mark, _)| it == mark);
    let form = normalizer.apply(String::from(character).into());
    form.is_ok_and(|form| {
        !form.is_empty() && !form.starts_with(is_space) && !form.ends_with(is_space)
    })
}

/// Finds the ids of uncached chunks of a run.
struct Unknown<'a> {
    run: &'a str,
    model: &'a Model,
    split: &'a Split,
    chunks: &'a Chunks,
    /// Buffer for the piece of a chunk.
    piece: RefCell<String>,
}

impl Unknown<'_> {
    /// Appends the ids of text that goes through all steps, from the normalizer on.
    fn append(&self, text: &str, normalizer: &Normalizer, ids: &mut Vec<u32>) -> Result<()> {
        let text = normalizer.apply(text.into())?;
        self.model.encode_normalized(&text, RunPosition::Chunk, self.split, ids)
    }
}

impl Resolve for Unknown<'_> {
    fn resolve(&self, _: &[u8], Piece { start, end }: Piece, ids: &mut Vec<u32>) -> Result<()> {
        poll(end - start)?;
        let (chunk, piece) = (&self.run[start..end], &mut *self.piece.borrow_mut());
        match self.chunks.write_piece(self.split, chunk, piece)? {
            true => self.model.append_word(piece, ids),
            false => self.append(chunk, &self.chunks.normalizer, ids),
        }
    }
}

impl Chunks {
    /// Appends the ids of an unnormalized run of a tokenizer with these components.
    pub(crate) fn append(
        &self,
        run: &str,
        model: &Model,
        split: &Split,
        normalizer: Option<&Normalizer>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let stripped = self.stripped(run);
        let (piece, run) = (RefCell::default(), stripped.unwrap_or(run));
        let unknown = Unknown { run, model, split, chunks: self, piece };
        if stripped.is_none() {
            return normalizer.map_or(Ok(()), |it| unknown.append(run, it, ids));
        }
        let permits = |character| self.permits(character);
        let permits: Permits<'_> = if self.permitted.is_some() { Some(&permits) } else { None };
        let words = self.splitter.words(run, permits);
        model.workspaces().encode_words(&unknown, words, ids)
    }
}

impl Chunks {
    /// Counts the chunks of a run. Counts nothing and returns false if the run needs all steps.
    pub(crate) fn count(&self, run: &str, table: &mut PieceTable) -> Result<bool> {
        let Some(run) = self.stripped(run) else { return Ok(false) };
        let permits = |character| self.permits(character);
        let permits: Permits<'_> = if self.permitted.is_some() { Some(&permits) } else { None };
        let mut words = self.splitter.words(run, permits);
        count_batches(run, table, |batch| Ok(words.fill(batch)))?;
        Ok(true)
    }

    /// Calls `found` with each piece of a chunk.
    pub(crate) fn each_word(
        &self,
        split: &Split,
        chunk: &str,
        mut found: impl FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let mut piece = String::new();
        match self.write_piece(split, chunk, &mut piece)? {
            true => found(&piece),
            false => split.each_piece(&self.normalizer.apply(chunk.into())?, found),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::split::BATCH;
    use unicode_categories::UnicodeCategories;

    use super::*;

    #[test]
    fn isolated_characters_are_pieces_of_bert() {
        let rules = WordRules { isolates_punctuation: true, ..WordRules::default() };
        let splitter = WordSplitter::new(rules);
        let mut batch = [Piece::default(); BATCH];
        for character in ('\u{80}'..=char::MAX).filter(|character| !character.is_whitespace()) {
            let text = format!("a{character}a");
            if splitter.words(&text, None).fill(&mut batch) > 1 {
                assert!(UnicodeCategories::is_punctuation(character), "{character:?}");
            }
        }
    }
}
