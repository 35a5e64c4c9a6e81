//! Looks up the text between two spaces as it is: normalizer, pre-tokenizer and model see only what the
//! cache does not know.
//!
//! That works where white space separates words whatever is around it: in BERT's files, where it
//! becomes no part of a token, and in those of SentencePiece, where a mark for it begins each word.
//! The model's cache then has chunks instead of pieces.

use bpe_core::ablation::Mechanism;
use bpe_core::char_boundary::ceil;
use bpe_core::lookup::Resolve;
use bpe_core::memory::filled;
use bpe_core::once::OnceBox;
use bpe_core::polling::poll;
use bpe_core::split::{Apart, WordChecks, WordRules, WordSpaces, WordSplitter};

use crate::added::AddedTokens;
use crate::error::Result;
use crate::model::Model;
use crate::normalize::{Ends, Normalizer};
use crate::settled::{Bits, is_settled};
use crate::spec::{Metaspace, PrependScheme};
use crate::split::{Plan, Split};

/// How a tokenizer cuts runs into chunks.
#[derive(Debug)]
pub(crate) struct Chunks {
    splitter: WordSplitter,
    /// Normalizes a chunk.
    normalizer: Normalizer,
    /// The treatment of white space at the ends of a run.
    ends: Ends,
    /// Whether that is done to white space that chunks hold.
    has_ends: bool,
    /// The character that each byte of ASCII becomes, as [`Singles`] has it.
    ascii: [u8; 256],
    singles: Singles,
    /// The mark of white space before a piece, and whether one is put where none is.
    mark: Option<(char, bool)>,
    /// Whether a chunk holds the white space before it.
    keeps_space: bool,
    /// Whether runs are not cut at tabs and line ends.
    only_blank: bool,
    /// The characters that a run can be cut beside; `None` for all.
    permitted: Option<Box<Bits>>,
    /// The characters of ASCII between which words can be cut; `None` if they are not.
    apart: Option<Box<Pairs>>,
    /// Whether the pre-tokenizer decides that, not the model.
    by_split: bool,
    /// Runs with more bytes are taken part by part.
    longest: usize,
    /// Whether a chunk without white space before it is the rest of a word.
    has_rests: bool,
}

/// The character that each character up to U+FFFF becomes in a chunk that is one piece, 0 where that
/// takes all steps: for 64 at a time, found when one of them is first asked for.
struct Singles(Box<[OnceBox<[u16; ROW]>]>);

/// 1 for some pairs of characters of ASCII.
type Pairs = [[u8; 128]; 128];

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

/// The longest chunk that needs no memory of its own.
const SHORT: usize = 80;
/// The most bytes of a character up to U+FFFF, and of a mark.
const WIDEST: usize = 3;
const MARK: usize = 4;
/// Room for the piece of a short chunk.
const ROOM: usize = WIDEST * SHORT + MARK;

/// White space where a run is cut.
const SPACES: [char; 4] = [' ', '\t', '\n', '\r'];

impl Chunks {
    /// The chunks of a tokenizer with these components; `None` if it has to see whole runs.
    pub(crate) fn new(
        model: &Model,
        split: &Split,
        normalizer: Option<&Normalizer>,
        added: &AddedTokens,
    ) -> Option<Self> {
        if !model.takes_words() || added.has_normalized() {
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
        // White space that is left out has no ends.
        let has_ends = keeps_space && (ends.left || ends.right || !ends.rows.is_empty());
        let needs_permits = locality.needs_settled || has_ends;
        let [blank, controls @ ..] = SPACES.map(|space| normalizer.space(space));
        let only_blank = keeps_space && controls.iter().any(|&space| space != Some(' '));
        let are_kept = match keeps_space {
            true => blank == Some(' ') && !(only_blank && needs_permits),
            false => controls.iter().all(Option::is_some) && blank.is_some(),
        };
        let has_borders =
            !has_ends || ('!'..='~').all(|character| keeps_ends(&normalizer, character));
        if !are_kept || !has_borders || keeps_space && locality.needs_dropped {
            return None;
        }
        let mut ascii = [0; 256];
        for byte in 1..128 {
            let made = single(&normalizer, split, char::from(byte)).filter(char::is_ascii);
            ascii[usize::from(byte)] = made.map_or(0, |made| made as u8);
        }
        let is_everywhere = locality.is_everywhere && !keeps_space;
        let isolates_punctuation = is_everywhere && split.isolates_punctuation();
        let isolates_han = is_everywhere && locality.isolates_han;
        // Those are words, too, not rests of them.
        let cutter = model.cutter().ok().flatten();
        let cutter = cutter.filter(|_| !isolates_punctuation && !isolates_han);
        let cutter = cutter.filter(|_| Mechanism::CutWords.is_used());
        let by_split = split.cuts_words() && Mechanism::CutWords.is_used();
        let has_rests = cutter.is_some() && mark.is_some_and(|(_, is_always)| is_always);
        let splitter = WordSplitter::new(WordRules {
            spaces: match has_rests {
                _ if keeps_space => WordSpaces::Rows,
                true => WordSpaces::Last,
                false => WordSpaces::Dropped,
            },
            only_blank,
            isolates_punctuation,
            isolates_han,
        });
        let apart = match by_split {
            true => Some(cuts_of(&normalizer, split)),
            false => cutter.map(|(cutter, _)| cutter.apart(&ascii)),
        };
        Some(Self {
            splitter,
            normalizer: normalizer.and(if has_ends { &ends.rows } else { &[] }),
            has_ends,
            ends,
            apart,
            by_split,
            longest: cutter.map_or(usize::MAX, |(_, longest)| longest),
            has_rests,
            ascii,
            singles: Singles::new(),
            mark,
            keeps_space,
            only_blank,
            permitted: needs_permits.then(|| Box::new(Bits::new())),
        })
    }

    /// Whether a run can be cut at white space beside a character.
    fn permits(&self, character: char) -> bool {
        let Some(permitted) = &self.permitted else { return true };
        permitted.get(character, |character| {
            is_settled(character) && (!self.has_ends || keeps_ends(&self.normalizer, character))
        })
    }

    fn is_space(&self, character: char) -> bool {
        character == ' ' || !self.only_blank && SPACES.contains(&character)
    }

    /// Whether a chunk is the rest of a word.
    fn is_rest(&self, chunk: &str) -> bool {
        self.has_rests && !chunk.starts_with(|first| self.is_space(first))
    }

    /// Makes the piece of a chunk in a buffer; `None` if that takes all steps.
    fn piece<'a>(
        &self,
        split: &Split,
        mut chunk: &str,
        is_rest: bool,
        room: &'a mut [u8],
    ) -> Option<&'a str> {
        let mut end = 0;
        if let Some((mark, is_always)) = self.mark {
            let rest = match self.keeps_space || self.has_rests {
                true => chunk.strip_prefix(|first| self.is_space(first)),
                false => None,
            };
            if rest.is_some() || is_always && !is_rest {
                end = mark.encode_utf8(room).len();
            }
            chunk = rest.unwrap_or(chunk);
        }
        for character in chunk.chars() {
            match self.ascii.get(character as usize) {
                Some(&made @ 1..) if character.is_ascii() => {
                    room[end] = made;
                    end += 1;
                }
                _ => end += self.single(split, character)?.encode_utf8(&mut room[end..]).len(),
            }
        }
        std::str::from_utf8(&room[..end]).ok()
    }

    /// The character that a character becomes in a chunk that is one piece.
    fn single(&self, split: &Split, character: char) -> Option<char> {
        self.made(split, character).filter(|&made| !self.by_split || split.keeps(made))
    }

    /// [`Chunks::single`], in a chunk of any pieces if the pre-tokenizer cuts words.
    fn made(&self, split: &Split, character: char) -> Option<char> {
        self.singles.get(character, |character| match self.by_split {
            true => self.normalizer.single(character),
            false => single(&self.normalizer, split, character),
        })
    }

    /// A run without the white space at its ends that is stripped; `None` if its normalized form must
    /// tell.
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

    /// The first place from `near` on between a character and white space where a run can be cut.
    pub(crate) fn end(&self, run: &str, near: usize) -> Option<usize> {
        let strips = self.has_ends && (self.ends.left || self.ends.right);
        if strips { None } else { self.border(run, near) }
    }

    /// [`Chunks::end`], of a run without white space to strip.
    fn border(&self, run: &str, near: usize) -> Option<usize> {
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

/// The characters of ASCII that a pre-tokenizer cuts between, once they are normalized.
fn cuts_of(normalizer: &Normalizer, split: &Split) -> Box<Pairs> {
    let mut cuts = Box::new([[0; 128]; 128]);
    for (before, row) in ('!'..='~').zip(&mut cuts[usize::from(b'!')..]) {
        for (after, place) in ('!'..='~').zip(&mut row[usize::from(b'!')..]) {
            let made = normalizer.single(before).zip(normalizer.single(after));
            *place = u8::from(made.is_some_and(|(before, after)| split.cuts(before, after)));
        }
    }
    cuts
}

/// The character that a character becomes, if it is part of one piece beside any others.
fn single(normalizer: &Normalizer, split: &Split, character: char) -> Option<char> {
    normalizer.single(character).filter(|&made| split.keeps(made))
}

/// Whether a character becomes text that begins and ends with other characters than white space.
fn keeps_ends(normalizer: &Normalizer, character: char) -> bool {
    let form = normalizer.apply(String::from(character).into());
    form.is_ok_and(|form| !form.is_empty() && form.trim().len() == form.len())
}

/// Finds the ids of chunks that are not cached.
struct Unknown<'a> {
    model: &'a Model,
    split: &'a Split,
    chunks: &'a Chunks,
}

impl Unknown<'_> {
    /// Appends the ids of text by all steps, with a normalizer.
    fn append(
        &self,
        text: &str,
        is_rest: bool,
        normalizer: &Normalizer,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let text = normalizer.apply(text.into())?;
        self.model.encode_chunk(&text, is_rest, self.split, ids)
    }

    /// Appends the ids of a chunk.
    fn append_chunk(&self, chunk: &str, is_rest: bool, ids: &mut Vec<u32>) -> Result<()> {
        let (mut short, mut long);
        let room = if chunk.len() <= SHORT {
            short = [0; ROOM];
            &mut short[..]
        } else {
            long = filled(0, WIDEST * chunk.len() + MARK)?;
            &mut long[..]
        };
        match self.chunks.piece(self.split, chunk, is_rest, room) {
            Some(piece) => self.model.encode_word(piece, ids),
            None => self.append(chunk, is_rest, &self.chunks.normalizer, ids),
        }
    }

    /// Appends the ids of a run whose words can be cut.
    fn append_run(&self, mut run: &str, ids: &mut Vec<u32>) -> Result<()> {
        let Self { model, split, chunks } = self;
        if !run.is_empty() && chunks.is_rest(run) {
            // The first word, which no white space tells from the rest of one.
            let first;
            (first, run) = run.split_at(chunks.border(run, 1).unwrap_or(run.len()));
            self.append_chunk(first, false, ids)?;
        }
        let cutter = model.cutter()?;
        let are_apart = |text: &str, place: usize| {
            let (mut before, mut after) = (text[..place].chars().rev(), text[place..].chars());
            let mut pair = || before.next().zip(after.next());
            let made = |character| chunks.made(split, character);
            let Some((Some(left), Some(right))) = pair().map(|(a, b)| (made(a), made(b))) else {
                return false;
            };
            // What is around them could change them.
            let is_settled = |character: char| character.is_ascii() || is_settled(character);
            before.next().is_none_or(is_settled)
                && after.next().is_none_or(is_settled)
                && match chunks.by_split {
                    true => split.cuts(left, right),
                    false => cutter.is_some_and(|(it, _)| it.are_never_joined(left, right)),
                }
        };
        let permits = |character| chunks.permits(character);
        let checks = WordChecks {
            permits: if chunks.permitted.is_some() { Some(&permits) } else { None },
            apart: chunks.apart.as_deref().map(|ascii| Apart { ascii, others: &are_apart }),
        };
        let words = chunks.splitter.words(run, checks);
        model.workspaces().encode_words(self, words, ids)
    }
}

impl Resolve for Unknown<'_> {
    fn resolve(&self, chunk: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        poll(chunk.len())?;
        // Chunks are cut between characters.
        let Ok(chunk) = std::str::from_utf8(chunk) else { return Ok(()) };
        self.append_chunk(chunk, self.chunks.is_rest(chunk), ids)
    }
}

impl Chunks {
    /// Appends the ids of a run, which is not normalized, of a tokenizer with these components.
    pub(crate) fn append(
        &self,
        run: &str,
        model: &Model,
        split: &Split,
        normalizer: Option<&Normalizer>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let unknown = Unknown { model, split, chunks: self };
        let Some(mut run) = self.stripped(run) else {
            return match normalizer {
                Some(normalizer) => unknown.append(run, false, normalizer, ids),
                None => Ok(()),
            };
        };
        while run.len() > self.longest {
            let end = self.border(run, self.longest / 2).unwrap_or(run.len());
            let (part, rest) = run.split_at(end);
            match end <= self.longest {
                true => unknown.append_run(part, ids)?,
                // The sums of a word may not be exact.
                false => unknown.append(part, false, &self.normalizer, ids)?,
            }
            run = rest;
        }
        unknown.append_run(run, ids)
    }
}

#[cfg(test)]
mod tests {
    use bpe_core::split::{BATCH, Piece};
    use unicode_categories::UnicodeCategories;

    use super::*;

    #[test]
    fn isolated_characters_are_pieces_of_bert() {
        let rules = WordRules { isolates_punctuation: true, ..WordRules::default() };
        let splitter = WordSplitter::new(rules);
        let mut batch = [Piece::default(); BATCH];
        for character in ('\u{80}'..=char::MAX).filter(|character| !character.is_whitespace()) {
            let text = format!("a{character}a");
            if splitter.words(&text, WordChecks::default()).fill(&mut batch) > 1 {
                assert!(UnicodeCategories::is_punctuation(character), "{character:?}");
            }
        }
    }
}
