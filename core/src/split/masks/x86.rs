//! The tiers of x86-64: classify text with AVX2 or AVX-512.
//!
//! Functions with vector instructions are inlined into `run_avx2` and `run_avx512`, which alone are
//! compiled for those instructions; their callers hold an [`Avx2`] or [`Avx512`], which only these
//! two can create.

use std::arch::x86_64::*;

use super::portable::union;
use super::{Classifier, Kernel, WINDOW, Window, add_multibyte, low_bits};
use crate::split::Piece;
use crate::split::char_table::{ROW_OF, ROWS};
use crate::split::chars::{self, ASCII, LOWER, NEWLINE, NUMBER, SPACE, UPPER};

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512(()))
}

/// Proof of AVX2: created only in `run_avx2`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2Window {
    halves: [__m256i; 2],
    by_class: [u64; 8],
    continuation: u64,
    valid: u64,
}

/// Returns the high bits of all bytes.
#[inline(always)]
fn gather(halves: [__m256i; 2]) -> u64 {
    // SAFETY: called only by the methods of `Avx2` and its windows, which prove AVX2.
    let [low, high] = unsafe { halves.map(|half| _mm256_movemask_epi8(half) as u32) };
    u64::from(low) | u64::from(high) << 32
}

/// Returns the bytes in `first..=last`, both ASCII: shifted so that `last` is the largest signed
/// byte.
#[inline(always)]
fn range(halves: [__m256i; 2], first: u8, last: u8) -> u64 {
    // SAFETY: called only by the methods of `Avx2` and its windows, which prove AVX2.
    unsafe {
        let shift = _mm256_set1_epi8((127 - last) as i8);
        let below = _mm256_set1_epi8((126 - (last - first)) as i8);
        gather(halves.map(|half| _mm256_cmpgt_epi8(_mm256_add_epi8(half, shift), below)))
    }
}

#[inline(always)]
fn equal(halves: [__m256i; 2], byte: u8) -> u64 {
    // SAFETY: called only by the methods of `Avx2` and its windows, which prove AVX2.
    unsafe {
        let byte = _mm256_set1_epi8(byte as i8);
        gather(halves.map(|half| _mm256_cmpeq_epi8(half, byte)))
    }
}

impl Avx2 {
    /// Loads the first bytes of a text, padded with zeros.
    #[inline(always)]
    fn load(self, rest: &[u8]) -> [__m256i; 2] {
        let mut copy = [0; WINDOW];
        let bytes = match rest.first_chunk::<WINDOW>() {
            Some(chunk) => chunk,
            None => {
                copy[..rest.len()].copy_from_slice(rest);
                &copy
            }
        };
        // SAFETY: both loads are inside the 64 bytes; `self` proves AVX2.
        unsafe {
            let first = bytes.as_ptr().cast::<__m256i>();
            [_mm256_loadu_si256(first), _mm256_loadu_si256(first.add(1))]
        }
    }
}

impl Classifier for Avx2 {
    type Window = Avx2Window;

    #[inline(always)]
    fn bytes(self, text: &[u8], at: usize) -> Avx2Window {
        let rest = &text[at..];
        let valid = low_bits(rest.len());
        Avx2Window { halves: self.load(rest), by_class: [0; 8], continuation: 0, valid }
    }

    #[inline(always)]
    fn window(self, text: &[u8], at: usize) -> Avx2Window {
        let rest = &text[at..];
        let halves = self.load(rest);
        let mut by_class = [0; 8];
        by_class[UPPER.trailing_zeros() as usize] = range(halves, b'A', b'Z');
        by_class[LOWER.trailing_zeros() as usize] = range(halves, b'a', b'z');
        by_class[NUMBER.trailing_zeros() as usize] = range(halves, b'0', b'9');
        by_class[NEWLINE.trailing_zeros() as usize] = equal(halves, b'\n') | equal(halves, b'\r');
        by_class[SPACE.trailing_zeros() as usize] =
            equal(halves, b' ') | range(halves, b'\t', b'\r');
        let mut valid = low_bits(rest.len());
        let high = gather(halves);
        let mut continuation = 0;
        if high != 0 {
            // SAFETY: `self` proves AVX2.
            continuation = unsafe {
                // 0x80..=0xBF are the signed bytes below -64.
                let bound = _mm256_set1_epi8(-64);
                gather(halves.map(|half| _mm256_cmpgt_epi8(bound, half)))
            };
            valid &= add_multibyte(text, at, high & !continuation, &mut by_class);
            continuation &= valid;
        }
        Avx2Window { halves, by_class, continuation, valid }
    }
}

impl Window for Avx2Window {
    #[inline(always)]
    fn any(&self, classes: u8) -> u64 {
        union(&self.by_class, classes)
    }

    #[inline(always)]
    fn equal(&self, byte: u8) -> u64 {
        equal(self.halves, byte)
    }

    #[inline(always)]
    fn between(&self, first: u8, last: u8) -> u64 {
        // SAFETY: only `Avx2`, which proves AVX2, creates windows.
        unsafe {
            let first_byte = _mm256_set1_epi8(first as i8);
            let most = _mm256_set1_epi8((last - first) as i8);
            gather(self.halves.map(|half| {
                let above = _mm256_sub_epi8(half, first_byte);
                _mm256_cmpeq_epi8(_mm256_min_epu8(above, most), above)
            }))
        }
    }

    #[inline(always)]
    fn continuation(&self) -> u64 {
        self.continuation
    }

    #[inline(always)]
    fn valid(&self) -> u64 {
        self.valid
    }
}

// `Avx512::emit` writes pieces as pairs of 64-bit numbers.
const _: () = assert!(size_of::<Piece>() == 16);

/// Proof of AVX-512: created only in `run_avx512`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512(());

#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512Window {
    bytes: __m512i,
    /// Class of each byte's character.
    classes: __m512i,
    continuation: u64,
    valid: u64,
}

impl Avx512 {
    /// Loads the first bytes of a text, padded with zeros.
    #[inline(always)]
    fn load(self, rest: &[u8]) -> __m512i {
        // SAFETY: the masked loads read only bytes of `rest`; `self` proves AVX-512.
        unsafe {
            if rest.len() >= WINDOW {
                _mm512_loadu_si512(rest.as_ptr().cast())
            } else {
                _mm512_maskz_loadu_epi8(low_bits(rest.len()), rest.as_ptr().cast())
            }
        }
    }
}

impl Classifier for Avx512 {
    type Window = Avx512Window;

    #[inline(always)]
    fn bytes(self, text: &[u8], at: usize) -> Avx512Window {
        let rest = &text[at..];
        let bytes = self.load(rest);
        // SAFETY: `self` proves AVX-512.
        let classes = unsafe { _mm512_setzero_si512() };
        Avx512Window { bytes, classes, continuation: 0, valid: low_bits(rest.len()) }
    }

    #[inline(always)]
    fn window(self, text: &[u8], at: usize) -> Avx512Window {
        let rest = &text[at..];
        let valid = low_bits(rest.len());
        let bytes = self.load(rest);
        // SAFETY: the table has 128 bytes; `self` proves AVX-512.
        unsafe {
            let table = ASCII.as_ptr();
            let low = _mm512_loadu_si512(table.cast());
            let high = _mm512_loadu_si512(table.add(64).cast());
            let classes = _mm512_permutex2var_epi8(low, bytes, high);
            if _mm512_movepi8_mask(bytes) == 0 {
                return Avx512Window { bytes, classes, continuation: 0, valid };
            }
            multibyte(text, at, bytes, classes, valid)
        }
    }

    #[inline(always)]
    fn emit(self, starts: u64, at: usize, out: &mut [Piece; WINDOW]) {
        // SAFETY: `POSITIONS` and `PAIRS` have 64 bytes; a group of four pieces is 64 bytes, as
        // `Piece` is two `usize` in order; `self` proves AVX-512.
        unsafe {
            let positions = _mm512_loadu_si512(POSITIONS.as_ptr().cast());
            // Ends and starts of the pieces; each start is the previous end, except the first.
            let ends = _mm512_maskz_compress_epi8(starts, positions);
            let mut pairs = _mm512_loadu_si512(PAIRS.as_ptr().cast());
            let base = _mm512_set1_epi64(at as i64);
            // Most windows have at most 16 pieces: four branchless groups, then the rest.
            let groups = (starts.count_ones() as usize).div_ceil(4).max(4);
            for group in out.as_chunks_mut::<4>().0.iter_mut().take(groups) {
                let pair = _mm512_permutexvar_epi8(pairs, ends);
                let wide = _mm512_cvtepu8_epi64(_mm512_castsi512_si128(pair));
                _mm512_storeu_si512(group.as_mut_ptr().cast(), _mm512_add_epi64(wide, base));
                pairs = _mm512_add_epi8(pairs, _mm512_set1_epi8(4));
            }
            out[0].start = at;
        }
    }
}

impl Window for Avx512Window {
    #[inline(always)]
    fn any(&self, classes: u8) -> u64 {
        // SAFETY: only `Avx512`, which proves AVX-512, creates windows.
        unsafe { _mm512_test_epi8_mask(self.classes, _mm512_set1_epi8(classes as i8)) }
    }

    #[inline(always)]
    fn equal(&self, byte: u8) -> u64 {
        // SAFETY: only `Avx512`, which proves AVX-512, creates windows.
        unsafe { _mm512_cmpeq_epi8_mask(self.bytes, _mm512_set1_epi8(byte as i8)) }
    }

    #[inline(always)]
    fn between(&self, first: u8, last: u8) -> u64 {
        // SAFETY: only `Avx512`, which proves AVX-512, creates windows.
        unsafe {
            let above = _mm512_sub_epi8(self.bytes, _mm512_set1_epi8(first as i8));
            _mm512_cmple_epu8_mask(above, _mm512_set1_epi8((last - first) as i8))
        }
    }

    #[inline(always)]
    fn continuation(&self) -> u64 {
        self.continuation
    }

    #[inline(always)]
    fn valid(&self) -> u64 {
        self.valid
    }
}

/// For each first byte of three-byte characters, indexed by its low six bits: the longest range of
/// second bytes, `first..=last`, for which all characters have the same class, and that class. Most
/// Han characters and all Hangul syllables are in such ranges.
struct Uniform {
    first: [u8; 64],
    last: [u8; 64],
    class: [u8; 64],
}

const fn uniform() -> Uniform {
    let mut table = Uniform { first: [0xFF; 64], last: [0; 64], class: [0; 64] };
    let mut lead = 0;
    while lead < 16 {
        let mut second = 0;
        while second < 64 {
            let Some(class) = class_of_row(lead * 64 + second) else {
                second += 1;
                continue;
            };
            let begin = second;
            while second < 64 && matches!(class_of_row(lead * 64 + second), Some(c) if c == class) {
                second += 1;
            }
            let entry = 0x20 + lead;
            let longest = table.last[entry] as isize - table.first[entry] as isize;
            if (second - begin) as isize > longest + 1 || table.first[entry] == 0xFF {
                table.first[entry] = 0x80 + begin as u8;
                table.last[entry] = 0x80 + second as u8 - 1;
                table.class[entry] = class;
            }
        }
        lead += 1;
    }
    table
}

/// Returns the class that all characters of a row share, if any.
const fn class_of_row(index: usize) -> Option<u8> {
    let row = row(index);
    let mut at = 1;
    while at < 64 {
        if row[at] != row[0] {
            return None;
        }
        at += 1;
    }
    Some(row[0])
}

static UNIFORM: Uniform = uniform();

/// Rows of characters that often occur in ASCII text: U+0080 to U+00BF, U+00C0 to U+00FF, and
/// U+2000 to U+203F with quotation marks and dashes.
static COMMON: [[u8; 64]; 3] = [*row(0x80 / 64), *row(0xC0 / 64), *row(0x2000 / 64)];

/// Returns the classes of the 64 characters from code point `64 * index` on.
const fn row(index: usize) -> &'static [u8; 64] {
    &ROWS[ROW_OF[index] as usize]
}

/// The bytes 0, 1, 2 and so on.
static POSITIONS: [u8; 64] = {
    let mut positions = [0; 64];
    let mut at = 0;
    while at < 64 {
        positions[at] = at as u8;
        at += 1;
    }
    positions
};

/// Alternately the start and the end of each of the first four pieces, as indices into all ends. A
/// start is the previous end, except for the first piece.
static PAIRS: [u8; 64] = {
    let mut pairs = [0xFF; 64];
    let mut at = 1;
    while at < 64 {
        pairs[at] = (at as u8 - 1) / 2;
        at += 1;
    }
    pairs
};

/// Completes a window with multi-byte characters.
///
/// Characters that differ only in the last byte share a row of 64 classes. One table look-up
/// classifies all characters of a row in the window. The rows of `COMMON` and the characters of
/// `UNIFORM` take one step; the rest take one round for each distinct row.
#[inline(never)]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi1,bmi2,lzcnt,popcnt"
)]
fn multibyte(
    text: &[u8],
    at: usize,
    bytes: __m512i,
    ascii_classes: __m512i,
    loaded: u64,
) -> Avx512Window {
    let at_least = |byte: u8| _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8(byte as i8));
    let (lead2, lead3, lead4) = (at_least(0xC0), at_least(0xE0), at_least(0xF0));
    // The character that a full window cuts off, by its first byte.
    let cut = lead2 & 1 << 63 | lead3 & 1 << 62 | lead4 & 1 << 61;
    let valid = loaded & cut.wrapping_sub(1);
    let high = _mm512_movepi8_mask(bytes) & valid;
    let continuation = high & !lead2;
    let leads = lead2 & valid;

    // For each byte, the bytes at distance one, two and three. SAFETY: `POSITIONS` has 64 bytes.
    let positions = unsafe { _mm512_loadu_si512(POSITIONS.as_ptr().cast()) };
    let moved = |by: i8| _mm512_add_epi8(positions, _mm512_set1_epi8(by));
    let second = _mm512_permutexvar_epi8(moved(1), bytes);
    let third = _mm512_permutexvar_epi8(moved(2), bytes);
    let fourth = _mm512_permutexvar_epi8(moved(3), bytes);

    // SAFETY: the tables have 64 bytes.
    let load = |table: &[u8; 64]| unsafe { _mm512_loadu_si512(table.as_ptr().cast()) };
    let look_up = |table: &[u8; 64]| _mm512_permutexvar_epi8(bytes, load(table));
    let equal = |vector: __m512i, among: u64, byte: u8| {
        _mm512_mask_cmpeq_epi8_mask(among, vector, _mm512_set1_epi8(byte as i8))
    };
    let three = lead3 & !lead4 & valid;
    let uniform = _mm512_mask_cmpge_epu8_mask(three, second, look_up(&UNIFORM.first));
    let uniform = _mm512_mask_cmple_epu8_mask(uniform, second, look_up(&UNIFORM.last));
    let punctuation = equal(second, equal(bytes, three, 0xE2), 0x80);
    // The first byte is 0xC2 or 0xC3: its last bit selects one of two rows of 64.
    let latin = equal(_mm512_or_si512(bytes, _mm512_set1_epi8(1)), leads, 0xC3);
    let upper_row = _mm512_and_si512(_mm512_slli_epi16::<6>(bytes), _mm512_set1_epi8(0x40));
    let place = _mm512_or_si512(upper_row, second);
    let latin_class = _mm512_permutex2var_epi8(load(&COMMON[0]), place, load(&COMMON[1]));

    // Class of the character at its first byte; copied to the other bytes below.
    let class = look_up(&UNIFORM.class);
    let class = _mm512_mask_permutexvar_epi8(class, punctuation, third, load(&COMMON[2]));
    let class = _mm512_mask_mov_epi8(class, latin, latin_class);
    let done = uniform | punctuation | latin;
    let mut classes = _mm512_maskz_mov_epi8(!high & valid, ascii_classes);
    classes = _mm512_mask_mov_epi8(classes, done, class);
    classes = _mm512_mask_permutexvar_epi8(classes, done << 1, moved(-1), class);
    classes = _mm512_mask_permutexvar_epi8(classes, (done & !latin) << 2, moved(-2), class);
    let mut rest = leads & !done;

    // For each byte, the last byte of its character, whose low bits are the index in the row.
    let four = lead4 & valid;
    let mut last = bytes;
    last = _mm512_mask_mov_epi8(last, leads & !lead3 | three << 1 | four << 2, second);
    last = _mm512_mask_mov_epi8(last, three | four << 1, third);
    last = _mm512_mask_mov_epi8(last, four, fourth);
    while rest != 0 {
        let first = at + rest.trailing_zeros() as usize;
        let byte = |offset: usize| text.get(first + offset).copied().unwrap_or(0);
        let bits = |byte: u8| u32::from(byte & 0x3F);
        let same = equal(bytes, rest, byte(0));
        let (row, same, members) = match byte(0) {
            0..0xE0 => (u32::from(byte(0) & 0x1F), same, same | same << 1),
            0xE0..0xF0 => {
                let same = equal(second, same, byte(1));
                let row = u32::from(byte(0) & 0x0F) << 6 | bits(byte(1));
                (row, same, same | same << 1 | same << 2)
            }
            _ => {
                let same = equal(third, equal(second, same, byte(1)), byte(2));
                let row = u32::from(byte(0) & 7) << 12 | bits(byte(1)) << 6 | bits(byte(2));
                (row, same, same | same << 1 | same << 2 | same << 3)
            }
        };
        // SAFETY: a row has 64 bytes.
        let row = unsafe { _mm512_loadu_si512(chars::row(row << 6).as_ptr().cast()) };
        classes = _mm512_mask_permutexvar_epi8(classes, members, last, row);
        rest &= !same;
    }
    Avx512Window { bytes, classes, continuation, valid }
}
