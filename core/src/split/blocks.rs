//! Cuts text window by window: the rules of the scanner as bit-mask arithmetic.
//!
//! Each window starts at the start of a piece. Rules look back at most to the start of the piece,
//! so earlier text does not matter. A position counts as the start of a piece only if no text after
//! the window could change that; the next window begins at the last such position. Characters that
//! the masks leave to the scanner, which are rare, are marked as hard: the window is used up to the
//! piece with the first hard character. The scanner cuts that piece, some pieces after it where
//! such windows are frequent, and pieces longer than a window.

use super::chars::{self, HAN, LETTER, LOWER, MARK, NEWLINE, NUMBER, SPACE, UPPER};
use super::masks::{Classifier, Kernel, WINDOW, Window};
use super::rules::{Contraction, Family, Prefix, Rules};
use super::scan;
use super::{BATCH, Batch, Piece};
use crate::memory::prefetch;

/// Fills a batch; the kernel that the tiers run. Returns the number of pieces written.
pub(super) struct Fill<'a, F> {
    pub text: &'a [u8],
    pub position: &'a mut usize,
    pub batch: &'a mut Batch,
    pub family: std::marker::PhantomData<F>,
}

impl<F: Family> Kernel for Fill<'_, F> {
    type Output = usize;

    #[inline(always)]
    fn run<C: Classifier>(self, classifier: C) -> usize {
        let text = self.text;
        let mut at = *self.position;
        let mut count = 0;
        // Number of pieces to scan after a hard window.
        let mut hard = 0;
        // At most 64 pieces begin in a window.
        while at < text.len() {
            let Some(out) = self.batch[count..].first_chunk_mut::<WINDOW>() else { break };
            if let Some(ahead) = text.get(at + AHEAD) {
                prefetch(ahead);
            }
            let window = classifier.window(text, at);
            let block = Block { text, at, is_last: text.len() - at <= WINDOW };
            let pieces = block.pieces::<F, _>(&window);
            classifier.emit(pieces.starts, at, out);
            count += pieces.starts.count_ones() as usize;
            let used = highest_position(pieces.starts);
            at += used;
            hard = match pieces.is_hard {
                true if used < FEW => (2 * hard + 1).min(MOST_SCANNED),
                is_hard => usize::from(is_hard),
            };
            let is_long = pieces.starts == 0 && !block.is_last;
            for _ in 0..hard.max(usize::from(is_long || block.is_last)) {
                let end = match hard > 0 || is_long {
                    true => scan::next_piece::<F>(text, at),
                    false => text.len(),
                };
                let Some(slot) = self.batch.get_mut(count).filter(|_| at < text.len()) else {
                    break;
                };
                *slot = Piece { start: at, end };
                count += 1;
                at = end;
            }
        }
        debug_assert!(count <= BATCH);
        *self.position = at;
        count
    }
}

/// Maximum number of pieces scanned before the next window. The number doubles after each
/// consecutive window in which a hard character leaves few bytes to use.
const MOST_SCANNED: usize = 31;
const FEW: usize = 16;

/// Prefetch distance in bytes: hardware prefetching stops at page boundaries.
const AHEAD: usize = 1024;

/// Position of a window in the text.
#[derive(Clone, Copy)]
struct Block<'a> {
    text: &'a [u8],
    at: usize,
    /// True if the window reaches the end of the text.
    is_last: bool,
}

/// Pieces of a window.
struct WindowPieces {
    /// Starts of all pieces except the first.
    starts: u64,
    /// True if the scanner has to cut the last piece.
    is_hard: bool,
}

/// Returns the first bit of each run of ones.
#[inline(always)]
fn run_starts(mask: u64) -> u64 {
    mask & !(mask << 1)
}

/// Returns the mask with bit `at` set, or 0 beyond the window.
#[inline(always)]
fn bit(at: usize) -> u64 {
    if at < WINDOW { 1 << at } else { 0 }
}

/// Returns the mask of the bits `from..to`.
#[inline(always)]
fn bits_between(from: usize, to: usize) -> u64 {
    bit(to).wrapping_sub(1) & !bit(from).wrapping_sub(1)
}

/// Masks that several rules use.
#[derive(Clone, Copy)]
struct Masks {
    valid: u64,
    continuation: u64,
    /// Word characters, without Han runs.
    letter: u64,
    /// Punctuation outside tails.
    punct: u64,
    /// Whitespace outside tails.
    space: u64,
    newline: u64,
    /// U+0020
    blank: u64,
    apostrophe: u64,
    number: u64,
    /// All Han characters, in families that make each run of Han characters a piece.
    han: u64,
    /// Newlines directly after punctuation; in some families also slashes.
    tail: u64,
    /// Chinese and Japanese characters, in the family that gives each run of them a piece; the
    /// other masks, except `number`, `valid` and `continuation`, are disjoint from this mask.
    cjk: u64,
}

impl Masks {
    #[inline(always)]
    fn of<W: Window>(rules: &Rules, window: &W) -> Self {
        let valid = window.valid();
        let han = if rules.han_runs { window.any(HAN) } else { 0 };
        let cjk = if rules.three_splits { cjk(window) } else { 0 };
        let punct = valid & !window.any(rules.letters | LETTER | NUMBER | SPACE) & !cjk;
        let newline = window.any(NEWLINE);
        let slash = if rules.punct_tail.contains(&b'/') { window.equal(b'/') } else { 0 };
        let tail = if rules.punct_tail.is_empty() { 0 } else { tail(punct, newline, slash) };
        Self {
            valid,
            continuation: window.continuation(),
            letter: window.any(rules.letters) & !(han | cjk),
            punct: punct & !tail,
            space: window.any(SPACE) & !tail,
            newline: newline & !tail,
            blank: window.equal(b' '),
            apostrophe: window.equal(b'\''),
            number: window.any(NUMBER),
            han,
            tail,
            cjk,
        }
    }
}

impl Block<'_> {
    #[inline(always)]
    fn pieces<F: Family, W: Window>(&self, window: &W) -> WindowPieces {
        let rules = &F::RULES;
        let masks = Masks::of(rules, window);
        let Masks { valid, continuation, number, han, tail, .. } = masks;
        let mut hard = 0;
        let mut starts = tail << 1 & !tail;

        // Punctuation without a leading space begins a piece, and may itself lead a word.
        let punct = run_starts(masks.punct) & !(masks.blank << 1);
        starts |= punct;
        let after_punct = match rules.prefix {
            Prefix::Space => 0,
            Prefix::NotNewline if rules.three_splits => {
                let letters = ascii_letters(&masks);
                let first = (punct & !not_ascii(&masks)) << 1 & letters;
                // The carry runs through the word's ASCII letters; the contraction ends the word.
                starts |= letters.wrapping_add(first) & !letters & masks.letter;
                first
            }
            Prefix::NotNewline => next_character(punct, continuation),
        };
        let leading_space = match rules.prefix {
            Prefix::Space => masks.blank,
            Prefix::NotNewline => masks.space & !masks.newline,
        };
        starts |= run_starts(masks.letter) & !(after_punct | leading_space << 1);

        if rules.han_runs {
            let letters = window.any(LETTER) & han;
            starts |= run_starts(letters);
            // Han digits, symbols and marks continue the run before them.
            hard |= han & !letters;
        }
        if rules.three_splits {
            hard |= self.others(window, &masks);
            let letters = window.any(rules.letters) & masks.cjk;
            starts |= run_starts(letters) | run_starts(masks.cjk & !letters);
        }
        starts |= digits(rules, &masks);
        if rules.digits > 1 {
            hard |= number & !continuation & continuation >> 1;
        }
        starts |= self.spaces(rules, &masks);
        let (upper, lower) = (window.any(UPPER) & masks.letter, window.any(LOWER) & masks.letter);
        if rules.case_runs {
            starts |= upper & lower << 1;
            // After two punctuation characters, or a space and a punctuation character, a mark
            // continues the run.
            hard |= window.any(MARK) & !continuation & masks.punct << 1 & !after_punct;
        }
        starts = self.contractions(rules, &masks, punct, starts);
        if rules.case_runs {
            let caseless = masks.letter & !(upper | lower);
            let turns = upper & caseless << 1;
            if turns != 0 {
                let letters = Letters { upper, lower, caseless };
                hard |= self.turns(&letters, valid, turns, &mut starts);
            }
        }
        starts &= valid & !1;
        if hard != 0 {
            starts &= (hard & hard.wrapping_neg()) - 1;
        }
        WindowPieces { starts, is_hard: hard != 0 }
    }

    /// Finds the positions at which whitespace is cut.
    #[inline(always)]
    fn spaces(&self, rules: &Rules, masks: &Masks) -> u64 {
        let Masks { valid, space, newline, .. } = *masks;
        let mut starts = run_starts(space);
        // The last whitespace character before other text is a piece, or leads the next piece.
        let mut last = space & !(space >> 1) & valid >> 1;
        if rules.newline_run {
            last &= !newline;
        }
        if rules.three_splits {
            last &= !((masks.number | masks.cjk) >> 1);
        }
        starts |= first_byte(last, masks.continuation);
        if !rules.newline_run {
            return starts;
        }
        // Whitespace after the last newline of a run is cut from the run.
        let other = space & !newline;
        let mut after = other & newline << 1;
        if after != 0 {
            let mut ends = other.wrapping_add(after) & !other & newline;
            while ends != 0 {
                let before = (ends & ends.wrapping_neg()) - 1;
                after &= !highest(after & before);
                ends &= ends - 1;
            }
            // A run that reaches the end of the window may continue; a run that reaches the end of
            // the text is one piece if the rules say so.
            if !self.is_last || rules.end_space_first {
                let others = highest(valid & !space);
                after &= others | others.wrapping_sub(u64::from(others != 0));
            }
            starts |= after;
        }
        starts
    }

    /// Returns the first bytes of characters without a class that are not punctuation.
    #[inline(always)]
    fn others<W: Window>(&self, window: &W, masks: &Masks) -> u64 {
        let ascii = window.between(0, 0x1F) | window.equal(0x7F);
        let mut others = masks.punct & ascii;
        if masks.continuation != 0 {
            let unclassed = masks.valid & !window.any(LETTER | MARK | NUMBER | SPACE);
            let mut leads = unclassed & not_ascii(masks) & !masks.continuation;
            while leads != 0 {
                if !chars::is_punctuation(self.text, self.at + leads.trailing_zeros() as usize) {
                    others |= leads & leads.wrapping_neg();
                }
                leads &= leads - 1;
            }
        }
        others
    }

    /// Returns `starts`, corrected for the contractions in the window.
    #[inline(always)]
    fn contractions(&self, rules: &Rules, masks: &Masks, punct: u64, mut starts: u64) -> u64 {
        let suffix = rules.contraction == Contraction::Suffix;
        let mut candidates = match rules.contraction {
            Contraction::None => 0,
            // Contractions at the start of a piece.
            Contraction::Lower | Contraction::AnyCase => masks.apostrophe & punct,
            // Contractions at the end of a word.
            Contraction::Suffix => masks.apostrophe & masks.letter << 1,
        };
        candidates &= masks.letter >> 1 | !(masks.valid >> 1);
        let mut previous_end = 0;
        while candidates != 0 {
            let start = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let length = scan::contraction(self.text, self.at + start, rules.contraction);
            if length == 0 || (suffix && start == previous_end) {
                continue;
            }
            previous_end = start + length;
            starts &= !bits_between(start + usize::from(!suffix), previous_end);
            starts |= bit(previous_end);
        }
        starts
    }

    /// Decides whether a word ends before `turns`, the capitals after caseless characters: the
    /// answer depends on lowercase letters before or after them in the word. Returns the capitals
    /// that the window cannot decide.
    #[inline(never)]
    fn turns(&self, letters: &Letters, valid: u64, turns: u64, starts: &mut u64) -> u64 {
        let mut rest = turns;
        while rest != 0 {
            let at = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let piece = highest((*starts | 1) & bits_between(0, at)).trailing_zeros() as usize;
            if letters.lower & bits_between(piece, at) != 0 {
                *starts |= bit(at);
                continue;
            }
            let first = letters.upper | letters.caseless;
            let end = at + (!(first >> at)).trailing_zeros() as usize;
            if valid & bit(end) == 0 && !self.is_last {
                return bit(at);
            }
            // Without a lowercase letter, the word ends after its last caseless character.
            if (letters.lower & bit(end)) | (letters.caseless & bits_between(at, end)) == 0 {
                *starts |= bit(at);
            }
        }
        0
    }
}

/// Word letters by case.
struct Letters {
    upper: u64,
    lower: u64,
    caseless: u64,
}

/// Returns the tails of punctuation: newlines and slashes, beginning with a newline directly after
/// the punctuation.
#[inline(always)]
fn tail(punct: u64, newline: u64, slash: u64) -> u64 {
    let members = newline | slash;
    // Adding a bit to a run of members clears the run from that bit on. If the run has a later
    // newline after a slash, only that bit is set again.
    let begin = newline & punct << 1;
    members & !members.wrapping_add(begin) | begin
}

/// Returns the characters of `[一-龥\u3040-\u30ff]`.
#[inline(always)]
fn cjk<W: Window>(window: &W) -> u64 {
    if window.continuation() == 0 {
        return 0;
    }
    let second = |first, last| window.between(first, last) >> 1;
    let last_row = window.equal(0xBE) >> 1 & window.between(0x80, 0xA5) >> 2;
    let leads = window.between(0xE5, 0xE8)
        | window.equal(0xE4) & second(0xB8, 0xBF)
        | window.equal(0xE9) & (second(0x80, 0xBD) | last_row)
        | window.equal(0xE3) & second(0x81, 0x83);
    (leads | leads << 1 | leads << 2) & window.valid()
}

/// Returns the bytes of multi-byte characters.
#[inline(always)]
fn not_ascii(masks: &Masks) -> u64 {
    masks.continuation | masks.continuation >> 1
}

#[inline(always)]
fn ascii_letters(masks: &Masks) -> u64 {
    masks.letter & !not_ascii(masks)
}

/// Finds the positions at which digits are cut.
#[inline(always)]
fn digits(rules: &Rules, masks: &Masks) -> u64 {
    let number = masks.number;
    let runs = run_starts(number);
    match rules.digits {
        0 => runs & !(masks.blank << 1),
        1 => number & !masks.continuation,
        most => {
            // Multi-byte digits are hard, so a group has `most` bytes.
            let mut inside = number;
            for back in 1..=most {
                inside &= number << back;
            }
            let mut starts = runs;
            let mut group = runs;
            while inside != 0 && group != 0 {
                group = group << most & inside;
                starts |= group;
            }
            starts
        }
    }
}

/// Returns the first byte of the character after each character that begins at a bit of `starts`.
#[inline(always)]
fn next_character(starts: u64, continuation: u64) -> u64 {
    // The carry runs through the continuation bytes of the character.
    (starts << 1).wrapping_add(continuation) & !continuation
}

/// Returns the first bytes of the characters whose last bytes are the bits of `last`; characters
/// have at most three bytes.
#[inline(always)]
fn first_byte(last: u64, continuation: u64) -> u64 {
    if last & continuation == 0 {
        return last;
    }
    let second = (last & continuation) >> 1;
    let third = (second & continuation) >> 1;
    (last | second | third) & !continuation
}

/// Returns the highest bit of `mask`, or 0 if the mask is empty.
#[inline(always)]
fn highest(mask: u64) -> u64 {
    if mask == 0 { 0 } else { 1 << (63 - mask.leading_zeros()) }
}

/// Returns the position of the highest bit of `mask`, or 0 if the mask is empty.
#[inline(always)]
fn highest_position(mask: u64) -> usize {
    63 - (mask | 1).leading_zeros() as usize
}
