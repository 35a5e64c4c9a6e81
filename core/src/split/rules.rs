//! The published families of patterns, each declared by ten fields.
//!
//! The scanner and the block cutter are generic over these fields; each family is a type, so that
//! the compiler drops the branches of other families.

use super::chars::{CASELESS, HAN, LETTER, LOWER, MARK, NEWLINE, NUMBER, SPACE, UPPER};

/// Positions at which `'s 't 're 've 'm 'll 'd` match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contraction {
    None,
    /// A separate piece, before all other rules; lowercase letters only.
    Lower,
    /// A separate piece, before all other rules; letters of any case.
    AnyCase,
    /// The end of a word; letters of any case.
    Suffix,
}

/// Character that may lead a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    /// U+0020
    Space,
    /// `[^\r\n\p{L}\p{N}]`
    NotNewline,
}

/// Rules of a pattern. A word is a run of letters with its prefix and its suffix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub contraction: Contraction,
    /// Classes of the characters that a word may contain.
    pub letters: u8,
    /// A word is `[upper, caseless]* [lower, caseless]+`, otherwise `[upper, caseless]+ [lower,
    /// caseless]*`; marks are caseless.
    pub case_runs: bool,
    pub prefix: Prefix,
    /// Maximum number of digits in a piece; 0 for any number, with a leading space.
    pub digits: usize,
    /// Bytes that may follow a run of punctuation, any number of times.
    pub punct_tail: &'static [u8],
    /// True if whitespace up to the last newline of its run is a piece: `\s*[\r\n]+`.
    pub newline_run: bool,
    /// True if whitespace at the end of the text is always one piece: `\s++$` before `newline_run`.
    pub end_space_first: bool,
    /// True if a run of `\p{Han}` is a piece, before all other rules, and never part of a word.
    pub han_runs: bool,
    /// True if digits, then Chinese and Japanese are cut first, so that no rule sees beyond them;
    /// only ASCII punctuation leads words, and such words are ASCII; and punctuation is
    /// `[\p{P}\p{S}]`. See [`super::deepseek`].
    pub three_splits: bool,
}

impl Rules {
    /// Returns true if a word may contain a character of this class.
    #[inline(always)]
    pub(super) fn is_letter(&self, class: u8) -> bool {
        class & self.letters != 0 && !(self.han_runs && class & HAN != 0)
    }

    /// Returns true if a run of punctuation may contain a character of this class.
    #[inline(always)]
    pub(super) fn is_punct(&self, class: u8) -> bool {
        class & self.not_punct() == 0
    }

    /// Returns the classes that a run of punctuation must not contain. Under `case_runs`, marks may
    /// be in both kinds of run: the patterns of those families have `[^\s\p{L}\p{N}]`. The other
    /// families with marks in words keep marks out of punctuation.
    #[inline(always)]
    pub(super) const fn not_punct(&self) -> u8 {
        let marks = if self.case_runs { 0 } else { self.letters & MARK };
        LETTER | NUMBER | SPACE | marks
    }

    /// Returns true if a character of this class, other than a letter, may lead a word.
    #[inline(always)]
    pub(super) fn is_prefix(&self, class: u8, byte: u8) -> bool {
        match self.prefix {
            Prefix::Space => byte == b' ',
            Prefix::NotNewline => class & (LETTER | NUMBER | NEWLINE) == 0,
        }
    }

    /// The classes with which a word of `case_runs` may begin.
    pub(super) const FIRST: u8 = UPPER | CASELESS | MARK;
    /// The classes with which a word of `case_runs` may end.
    pub(super) const LAST: u8 = LOWER | CASELESS | MARK;
}

/// A family as a type, so that code is specialized for its rules.
pub(super) trait Family {
    const RULES: Rules;
}

/// Declares each family, the enum of all families, and `with_family!`, which runs generic code for
/// a given family.
macro_rules! families {
    ($($(#[$doc:meta])* $name:ident = $rules:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub(super) struct $name;

            impl Family for $name {
                const RULES: Rules = $rules;
            }
        )*

        /// The family of a pattern.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum FamilyName { $($name,)* }

        impl FamilyName {
            #[cfg(test)]
            pub(super) const ALL: &'static [FamilyName] = &[$(FamilyName::$name,)*];

            /// Calls `visitor` with the family as a type.
            #[inline]
            pub(super) fn visit<V: FamilyVisitor>(self, visitor: V) -> V::Output {
                match self { $(FamilyName::$name => visitor.visit::<$name>(),)* }
            }
        }
    };
}

/// Code that is generic over the family.
pub(super) trait FamilyVisitor {
    type Output;
    fn visit<F: Family>(self) -> Self::Output;
}

const CL100K: Rules = Rules {
    contraction: Contraction::AnyCase,
    letters: LETTER,
    case_runs: false,
    prefix: Prefix::NotNewline,
    digits: 3,
    punct_tail: b"\r\n",
    newline_run: true,
    end_space_first: true,
    han_runs: false,
    three_splits: false,
};

const O200K: Rules = Rules {
    contraction: Contraction::Suffix,
    letters: LETTER | MARK,
    case_runs: true,
    punct_tail: b"\r\n/",
    end_space_first: false,
    ..CL100K
};

families! {
    /// GPT-2, r50k_base, p50k_base.
    R50k = Rules {
        contraction: Contraction::Lower,
        prefix: Prefix::Space,
        digits: 0,
        punct_tail: b"",
        newline_run: false,
        ..CL100K
    };
    /// cl100k_base as spelled by tiktoken since 0.8.
    Cl100k = CL100K;
    /// cl100k_base as first published; OLMo 3, Llama 3.
    Olmo3 = Rules { end_space_first: false, ..CL100K };
    /// Qwen, Qwen 2 and 3.
    Qwen2 = Rules { end_space_first: false, digits: 1, ..CL100K };
    /// Qwen 3.5.
    Qwen35 = Rules { end_space_first: false, digits: 1, letters: LETTER | MARK, ..CL100K };
    /// o200k_base, o200k_harmony.
    O200k = O200K;
    /// Nemotron, and Mistral's Tekken.
    Nemotron = Rules { contraction: Contraction::None, digits: 1, ..O200K };
    /// Kimi K2.
    Kimi = Rules { punct_tail: b"\r\n", han_runs: true, ..O200K };
    /// DeepSeek V3.
    DeepSeek = Rules {
        contraction: Contraction::None,
        letters: LETTER | MARK,
        end_space_first: false,
        three_splits: true,
        ..CL100K
    };
}

/// DeepSeek's three splits as one pattern. Each split also cuts the matches of earlier splits, so
/// no match continues from Chinese or Japanese into other text, and whitespace before them or
/// before digits is at the end of its run. Unmatched text is a piece.
pub const DEEPSEEK: &str = concat!(
    r"\p{N}{1,3}",
    r"|(?:(?=[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff])[^\p{L}\p{P}\p{S}])?",
    r"(?:(?=[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff])[\p{L}\p{M}])+",
    r"|(?:(?=[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff])[\p{P}\p{S}])+",
    r"|(?:(?=[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff])[^\p{L}\p{M}\p{P}\p{S}]",
    r"(?!(?=[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff])[\p{L}\p{M}]))+",
    r##"|[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|(?:[^\r\n\p{L}\p{P}\p{S}\p{N}\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff])?",
    r"(?:(?![\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff])[\p{L}\p{M}])+",
    r"| ?(?:(?![\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff])[\p{P}\p{S}])+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?=[\p{N}\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff])|\s+(?!\S)|\s+",
    r"|(?:[^\s\p{L}\p{M}\p{N}\p{P}\p{S}\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]",
    r"(?!(?![\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff])[\p{L}\p{M}]))+",
);

/// Exact patterns of the families. Each equivalent spelling is listed: tests check the equivalence,
/// and patterns are never rewritten.
pub(super) const SPELLINGS: &[(FamilyName, &str)] = &[
    (
        FamilyName::R50k,
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    ),
    (
        FamilyName::R50k,
        r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    ),
    (
        FamilyName::R50k,
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    ),
    (FamilyName::R50k, r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    (
        FamilyName::Cl100k,
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    (
        FamilyName::Olmo3,
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        FamilyName::Olmo3,
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ),
    (
        FamilyName::Qwen2,
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        FamilyName::Qwen35,
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        FamilyName::O200k,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        FamilyName::Nemotron,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        FamilyName::Kimi,
        r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (FamilyName::DeepSeek, DEEPSEEK),
];

impl FamilyName {
    /// Returns the family with `pattern` among its spellings.
    pub(super) fn of_pattern(pattern: &str) -> Option<Self> {
        SPELLINGS.iter().find(|(_, spelling)| *spelling == pattern).map(|(family, _)| *family)
    }
}
