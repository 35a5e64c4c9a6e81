//! Cuts text into words, window by window: at ASCII whitespace, and around ASCII punctuation and
//! Han characters.

use super::masks::{Classifier, Kernel, WINDOW, Window};
#[cfg(any(test, feature = "ablation"))]
use super::plain_words;
use super::word_rules::{Permits, WordRules};
use super::{BATCH, Batch, Piece};
#[cfg(feature = "ablation")]
use crate::ablation::Mechanism;
use crate::memory::prefetch;
use crate::tier::Tier;

/// Cuts text by [`WordRules`].
#[derive(Debug, Clone, Copy)]
pub struct WordSplitter {
    rules: WordRules,
    tier: Tier,
}

impl WordSplitter {
    /// Creates a splitter for the rules.
    ///
    /// ```
    /// use bpe_core::split::{BATCH, Piece, WordRules, WordSplitter};
    ///
    /// let rules = WordRules { isolates_punctuation: true, ..WordRules::default() };
    /// let mut batch = [Piece::default(); BATCH];
    /// let splitter = WordSplitter::new(rules);
    /// let count = splitter.words("Hi there,\n you!", None).fill(&mut batch);
    /// let words: Vec<_> = batch[..count].iter().map(|word| (word.start, word.end)).collect();
    /// assert_eq!(words, [(0, 2), (3, 8), (8, 9), (11, 14), (14, 15)]);
    /// ```
    pub fn new(rules: WordRules) -> Self {
        Self::with_tier(rules, Tier::from_environment())
    }

    pub(crate) fn with_tier(rules: WordRules, tier: Tier) -> Self {
        Self { rules, tier }
    }

    /// Returns the words of a text, in batches.
    pub fn words<'a>(&self, text: &'a str, permits: Permits<'a>) -> Words<'a> {
        Words { splitter: *self, text, permits, at: 0, before: Before::START, open: None }
    }
}

/// The words of one text.
#[allow(missing_debug_implementations)]
pub struct Words<'a> {
    splitter: WordSplitter,
    text: &'a str,
    permits: Permits<'a>,
    at: usize,
    before: Before,
    /// Start of a word whose end has not been found yet.
    open: Option<usize>,
}

impl<'a> Words<'a> {
    /// Returns the text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Writes the next words into `batch` and returns their number; 0 at the end of the text.
    pub fn fill(&mut self, batch: &mut Batch) -> usize {
        #[cfg(feature = "ablation")]
        if !Mechanism::Windows.is_used() {
            return self.fill_plainly(batch);
        }
        self.splitter.tier.run(Fill { words: self, batch })
    }

    /// Like [`Words::fill`], but character by character.
    #[cfg(any(test, feature = "ablation"))]
    pub(crate) fn fill_plainly(&mut self, batch: &mut Batch) -> usize {
        let Self { splitter, text, permits, at, .. } = self;
        plain_words::fill(splitter.rules, *permits, text, at, batch)
    }
}

/// State of the text before a window.
#[derive(Debug, Clone, Copy)]
struct Before {
    /// 1 if a word may begin or end at the start of the window.
    boundary: u64,
    /// 1 after dropped whitespace, and at the beginning of the text.
    dropped: u64,
    /// 1 after whitespace or printable ASCII.
    plain: u64,
    /// 1 after whitespace.
    space: u64,
}

impl Before {
    const START: Self = Self { boundary: 1, dropped: 1, plain: 1, space: 0 };
}

struct Fill<'a, 'b> {
    words: &'a mut Words<'b>,
    batch: &'a mut Batch,
}

impl Kernel for Fill<'_, '_> {
    type Output = usize;

    #[inline(always)]
    fn run<C: Classifier>(self, classifier: C) -> usize {
        let Self { words, batch } = self;
        let (rules, permits) = (words.splitter.rules, words.permits);
        let text = words.text.as_bytes();
        let (mut at, mut before) = (words.at, words.before);
        let mut started = 0;
        let mut ended = 0;
        if let Some(start) = words.open.take() {
            batch[0].start = start;
            started = 1;
        }
        while at < text.len() && started + WINDOW < BATCH {
            if let Some(ahead) = text.get(at + AHEAD) {
                prefetch(ahead);
            }
            let window = classifier.bytes(text, at);
            let length = whole(words.text, at);
            let window = Span { window, text: words.text, at, length };
            let cut = window.boundaries(&rules, permits, &mut before);
            write(cut.starts, at, &mut batch[started..], |piece| &mut piece.start);
            started += cut.starts.count_ones() as usize;
            write(cut.ends, at, &mut batch[ended..], |piece| &mut piece.end);
            ended += cut.ends.count_ones() as usize;
            at += length;
        }
        if ended < started {
            if at == text.len() {
                batch[ended].end = at;
                ended += 1;
            } else {
                words.open = Some(batch[ended].start);
            }
        }
        (words.at, words.before) = (at, before);
        ended
    }
}

/// Prefetch distance in bytes.
const AHEAD: usize = 1024;

/// Returns the number of bytes of the characters that end in the window at `at`.
#[inline(always)]
fn whole(text: &str, at: usize) -> usize {
    let end = at + WINDOW;
    if end >= text.len() {
        return text.len() - at;
    }
    if text.as_bytes()[end] < 0x80 {
        return WINDOW;
    }
    (1..=3).map(|back| WINDOW - back).fold(WINDOW, |length, shorter| {
        if text.is_char_boundary(at + length) { length } else { shorter }
    })
}

/// First bytes of words, and the bytes after their last bytes.
struct Cut {
    starts: u64,
    ends: u64,
}

/// A window of whole characters, and its position in the text.
struct Span<'a, W> {
    window: W,
    text: &'a str,
    at: usize,
    length: usize,
}

impl<W: Window> Span<'_, W> {
    #[inline(always)]
    fn boundaries(&self, rules: &WordRules, permits: Permits<'_>, before: &mut Before) -> Cut {
        let valid = u64::MAX >> (WINDOW - self.length);
        let last = self.length - 1;
        let all_spaces = self.spaces(rules) & valid;
        let spaces = match permits {
            Some(permits) => self.permitted(all_spaces, permits, before),
            None => all_spaces,
        };
        let (first, dropped) = match rules.keeps_spaces {
            true => (spaces & !(all_spaces << 1 | before.space), 0),
            false => (spaces, spaces),
        };
        let mut boundaries = first | dropped << 1 | before.boundary;
        before.space = all_spaces >> last & 1;
        before.boundary = dropped >> last & 1;
        if rules.isolates_punctuation {
            let punctuation = self.punctuation() & valid;
            boundaries |= punctuation | punctuation << 1;
            before.boundary |= punctuation >> last & 1;
            let (two, three) = self.wide_punctuation();
            let (two, three) = (two & valid, three & valid);
            boundaries |= two | two << 2 | three | three << 3;
            before.boundary |= ((two << 1) | (three << 2)) >> last & 1;
        }
        if rules.isolates_han {
            let han = han(&self.window) & valid;
            boundaries |= han | han << 3;
            before.boundary |= (han << 2) >> last & 1;
        }
        boundaries &= valid;
        let after_dropped = dropped << 1 | before.dropped;
        before.dropped = dropped >> last & 1;
        Cut { starts: boundaries & !dropped, ends: boundaries & !after_dropped }
    }

    #[inline(always)]
    fn spaces(&self, rules: &WordRules) -> u64 {
        let blanks = self.window.equal(b' ');
        if rules.only_blank { blanks } else { blanks | self.controls() }
    }

    #[inline(always)]
    fn controls(&self) -> u64 {
        self.window.between(b'\t', b'\n') | self.window.equal(b'\r')
    }

    /// Returns the whitespace at which the text may be cut.
    #[inline(always)]
    fn permitted(
        &self,
        mut spaces: u64,
        permits: &dyn Fn(char) -> bool,
        before: &mut Before,
    ) -> u64 {
        let last = self.length - 1;
        let plain = self.window.between(b' ', b'~') | self.controls();
        let next = self.text.as_bytes().get(self.at + self.length);
        let next = u64::from(next.is_none_or(|&byte| is_plain(byte)));
        let is_between = (plain << 1 | before.plain) & (plain >> 1 & !(1 << last) | next << last);
        before.plain = plain >> last & 1;
        let mut unsure = spaces & !is_between;
        while unsure != 0 {
            let place = unsure.trailing_zeros() as usize;
            unsure &= unsure - 1;
            if !may_cut(self.text, self.at + place, permits) {
                spaces &= !(1 << place);
            }
        }
        spaces
    }

    #[inline(always)]
    fn punctuation(&self) -> u64 {
        self.window.between(b'!', b'/')
            | self.window.between(b':', b'@')
            | self.window.between(b'[', b'`')
            | self.window.between(b'{', b'~')
    }
}

impl<W: Window> Span<'_, W> {
    /// Returns the first bytes of common two-byte and three-byte punctuation: quotation marks,
    /// dashes and the like, and punctuation between Chinese and Japanese words.
    #[inline(always)]
    fn wide_punctuation(&self) -> (u64, u64) {
        let window = &self.window;
        if window.between(0xc2, 0xef) == 0 {
            return (0, 0);
        }
        let second = |byte: u8| window.equal(byte) >> 1;
        let third = |first: u8, last: u8| window.between(first, last) >> 2;
        let two = window.equal(0xc2) & (second(0xab) | second(0xb7) | second(0xbb));
        let general = third(0x90, 0xa7) | third(0xb0, 0xbe);
        let cjk = third(0x81, 0x83) | third(0x88, 0x91);
        let full = third(0x81, 0x83) | third(0x85, 0x8a) | third(0x8c, 0x8f);
        let full = full | third(0x9a, 0x9b) | third(0x9f, 0xa0);
        let three = (window.equal(0xe2) & general | window.equal(0xe3) & cjk) & second(0x80)
            | window.equal(0xef) & second(0xbc) & full;
        (two, three)
    }
}

/// Returns the first bytes of Han characters.
#[inline(always)]
fn han(window: &impl Window) -> u64 {
    let high = window.between(0xe3, 0xe9);
    if high == 0 {
        return 0;
    }
    let extension = window.equal(0xe3) & window.between(0x90, 0xbf) >> 1;
    // U+4DC0 to U+4DFF are not Han characters.
    let first = window.equal(0xe4) & !(window.equal(0xb7) >> 1);
    extension | first | window.between(0xe5, 0xe9)
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

/// Returns true if both neighbors of the whitespace at `place` permit a cut.
#[inline(never)]
fn may_cut(text: &str, place: usize, permits: &dyn Fn(char) -> bool) -> bool {
    let permits =
        |character: char| u8::try_from(character).is_ok_and(is_plain) || permits(character);
    text[..place].chars().next_back().is_none_or(permits)
        && text[place + 1..].chars().next().is_none_or(permits)
}

/// Writes the positions of the bits, counted from `at`, into one field of successive pieces.
#[inline(always)]
fn write(mut bits: u64, at: usize, pieces: &mut [Piece], field: impl Fn(&mut Piece) -> &mut usize) {
    for group in pieces[..WINDOW].as_chunks_mut::<8>().0 {
        if bits == 0 {
            break;
        }
        for piece in group {
            *field(piece) = at + bits.trailing_zeros() as usize;
            bits &= bits.wrapping_sub(1);
        }
    }
}
