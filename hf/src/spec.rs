//! The components of a tokenizer file, as its JSON has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};

/// What is looked for: a text, or a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pattern {
    /// These characters.
    String(String),
    /// In the syntax of Oniguruma.
    Regex(String),
}

/// `normalizer`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[allow(missing_docs)]
pub enum Normalizer {
    NFC,
    NFD,
    NFKC,
    NFKD,
    Lowercase,
    Replace { pattern: Pattern, content: String },
    Prepend { prepend: String },
    Strip { strip_left: bool, strip_right: bool },
    Sequence { normalizers: Vec<Normalizer> },
}

/// What becomes of the matches of a pattern that splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Behavior {
    Removed,
    Isolated,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

/// `pre_tokenizer`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[allow(missing_docs)]
pub enum PreTokenizer {
    ByteLevel {
        add_prefix_space: bool,
        trim_offsets: bool,
        #[serde(default = "yes")]
        use_regex: bool,
    },
    Split {
        pattern: Pattern,
        behavior: Behavior,
        invert: bool,
    },
    Digits {
        individual_digits: bool,
    },
    Punctuation {
        #[serde(default = "isolated")]
        behavior: Behavior,
    },
    Whitespace,
    WhitespaceSplit,
    Sequence {
        pretokenizers: Vec<PreTokenizer>,
    },
}

fn yes() -> bool {
    true
}

fn isolated() -> Behavior {
    Behavior::Isolated
}

/// Which of the two sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum SequenceId {
    A,
    B,
}

/// One part of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum TemplatePiece {
    Sequence { id: SequenceId, type_id: u32 },
    SpecialToken { id: String, type_id: u32 },
}

/// What a name in a template stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateToken {
    /// The name.
    pub id: String,
    /// The ids.
    pub ids: Vec<u32>,
    /// The tokens.
    pub tokens: Vec<String>,
}

/// `post_processor`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[allow(missing_docs)]
pub enum PostProcessor {
    ByteLevel {
        add_prefix_space: bool,
        trim_offsets: bool,
        #[serde(default = "yes")]
        use_regex: bool,
    },
    TemplateProcessing {
        single: Vec<TemplatePiece>,
        pair: Vec<TemplatePiece>,
        special_tokens: BTreeMap<String, TemplateToken>,
    },
    RobertaProcessing {
        sep: (String, u32),
        cls: (String, u32),
        trim_offsets: bool,
        add_prefix_space: bool,
    },
    BertProcessing {
        sep: (String, u32),
        cls: (String, u32),
    },
    Sequence {
        processors: Vec<PostProcessor>,
    },
}

/// `decoder`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[allow(missing_docs)]
pub enum Decoder {
    ByteLevel {
        add_prefix_space: bool,
        trim_offsets: bool,
        #[serde(default = "yes")]
        use_regex: bool,
    },
    Replace {
        pattern: Pattern,
        content: String,
    },
    Strip {
        content: char,
        start: usize,
        stop: usize,
    },
    Fuse,
    Sequence {
        decoders: Vec<Decoder>,
    },
}

/// Which side is cut off, or filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[allow(missing_docs)]
pub enum Direction {
    Left,
    #[default]
    Right,
}

/// Which sequence of a pair is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum TruncationStrategy {
    LongestFirst,
    OnlyFirst,
    OnlySecond,
}

/// `truncation`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Truncation {
    #[serde(default)]
    pub direction: Direction,
    pub max_length: usize,
    pub strategy: TruncationStrategy,
    pub stride: usize,
    /// Whether what is cut off is thrown away. No part of the file.
    #[serde(skip)]
    pub discards_overflow: bool,
}

/// To which length texts are filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum PaddingStrategy {
    BatchLongest,
    Fixed(usize),
}

/// `padding`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Padding {
    pub strategy: PaddingStrategy,
    pub direction: Direction,
    pub pad_to_multiple_of: Option<usize>,
    pub pad_id: u32,
    pub pad_type_id: u32,
    pub pad_token: String,
}

/// A component that can be read from a part of a file.
pub trait Component: Sized + serde::de::DeserializeOwned {
    /// The types of it that are supported.
    const TYPES: &'static [&'static str];
    /// The field that holds the parts of a sequence.
    const PARTS: &'static str;

    /// Reads `value`, which stands at `path` in the file.
    ///
    /// Fails with [`Error::Unsupported`] for a type that is not supported, with the path to it.
    fn read(value: &Value, path: &str) -> Result<Self> {
        check_types::<Self>(value, path)?;
        serde_json::from_value(value.clone())
            .map_err(|error| Error::Invalid(format!("{path}: {error}")))
    }
}

fn check_types<C: Component>(value: &Value, path: &str) -> Result<()> {
    let Some(name) = value.get("type").and_then(Value::as_str) else {
        // `tokenizers` guesses the type of such an object or list by its fields.
        return Err(if value.is_object() || value.is_array() {
            Error::unsupported(path, "a component without a type")
        } else {
            Error::Invalid(format!("{path}: a component must be an object with a type"))
        });
    };
    if !C::TYPES.contains(&name) {
        return Err(Error::unsupported(format!("{path}.type"), format!("{name:?}")));
    }
    let parts = value.get(C::PARTS).and_then(Value::as_array).filter(|_| name == "Sequence");
    for (index, part) in parts.into_iter().flatten().enumerate() {
        check_types::<C>(part, &format!("{path}.{}[{index}]", C::PARTS))?;
    }
    Ok(())
}

impl Component for Normalizer {
    const TYPES: &'static [&'static str] =
        &["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Replace", "Prepend", "Strip", "Sequence"];
    const PARTS: &'static str = "normalizers";
}

impl Component for PreTokenizer {
    const TYPES: &'static [&'static str] = &[
        "ByteLevel",
        "Split",
        "Digits",
        "Punctuation",
        "Whitespace",
        "WhitespaceSplit",
        "Sequence",
    ];
    const PARTS: &'static str = "pretokenizers";
}

impl Component for PostProcessor {
    const TYPES: &'static [&'static str] =
        &["ByteLevel", "TemplateProcessing", "RobertaProcessing", "BertProcessing", "Sequence"];
    const PARTS: &'static str = "processors";
}

impl Component for Decoder {
    const TYPES: &'static [&'static str] = &["ByteLevel", "Replace", "Strip", "Fuse", "Sequence"];
    const PARTS: &'static str = "decoders";
}
