//! The JSON schema of the components of a tokenizer file: normalizer, pre-tokenizer and so on.

use std::collections::BTreeMap;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// A text or regular expression to search for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pattern {
    /// Exactly this text.
    String(String),
    /// A regular expression in Oniguruma's syntax.
    Regex(String),
}

/// The field `normalizer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[allow(missing_docs)]
pub enum Normalizer {
    NFC,
    NFD,
    NFKC,
    NFKD,
    Nmt,
    Lowercase,
    StripAccents,
    ByteLevel,
    BertNormalizer {
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: Option<bool>,
        lowercase: bool,
    },
    Precompiled {
        #[serde(deserialize_with = "canonical_base64")]
        precompiled_charsmap: String,
    },
    Replace {
        pattern: Pattern,
        content: String,
    },
    Prepend {
        prepend: String,
    },
    Strip {
        strip_left: bool,
        strip_right: bool,
    },
    Sequence {
        normalizers: Vec<Normalizer>,
    },
}

/// How splitting by a pattern treats the matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Behavior {
    Removed,
    Isolated,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

/// The field `pre_tokenizer`.
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
    BertPreTokenizer,
    CharDelimiterSplit {
        delimiter: char,
    },
    UnicodeScripts,
    FixedLength {
        #[serde(default = "five")]
        length: usize,
    },
    Metaspace(Metaspace),
    Sequence {
        pretokenizers: Vec<PreTokenizer>,
    },
}

fn yes() -> bool {
    true
}

fn five() -> usize {
    5
}

/// Reads base64, and writes it again as `tokenizers` does.
fn canonical_base64<'de, D: Deserializer<'de>>(text: D) -> std::result::Result<String, D::Error> {
    let bytes = BASE64.decode(String::deserialize(text)?).map_err(D::Error::custom)?;
    Ok(BASE64.encode(bytes))
}

/// Base64 as `tokenizers` reads it, also without padding.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// `Metaspace`, as pre-tokenizer and as decoder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "MetaspaceFile")]
pub struct Metaspace {
    /// The character that replaces spaces.
    pub replacement: char,
    /// Where it is prepended to text without it.
    pub prepend_scheme: PrependScheme,
    /// Whether text is split before each replacement.
    pub split: bool,
}

/// The pieces that [`Metaspace`] prepends its replacement to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum PrependScheme {
    First,
    Never,
    Always,
}

/// [`Metaspace`] in a file, where older versions have `add_prefix_space`.
#[derive(Deserialize)]
struct MetaspaceFile {
    replacement: char,
    add_prefix_space: Option<bool>,
    #[serde(default = "always")]
    prepend_scheme: PrependScheme,
    #[serde(default = "yes")]
    split: bool,
}

fn always() -> PrependScheme {
    PrependScheme::Always
}

impl TryFrom<MetaspaceFile> for Metaspace {
    type Error = &'static str;

    fn try_from(file: MetaspaceFile) -> std::result::Result<Self, Self::Error> {
        let MetaspaceFile { replacement, add_prefix_space, prepend_scheme, split } = file;
        if add_prefix_space == Some(false) && prepend_scheme != PrependScheme::Never {
            return Err("add_prefix_space does not match declared prepend_scheme");
        }
        Ok(Self { replacement, prepend_scheme, split })
    }
}

fn isolated() -> Behavior {
    Behavior::Isolated
}

/// The first or second sequence.
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

/// The tokens that a name in a template inserts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateToken {
    /// The name.
    pub id: String,
    /// The ids.
    pub ids: Vec<u32>,
    /// The tokens.
    pub tokens: Vec<String>,
}

/// The field `post_processor`.
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

/// The field `decoder`.
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
    ByteFallback,
    WordPiece {
        prefix: String,
        cleanup: bool,
    },
    BPEDecoder {
        suffix: String,
    },
    CTC {
        pad_token: String,
        word_delimiter_token: String,
        cleanup: bool,
    },
    Metaspace(Metaspace),
    Sequence {
        decoders: Vec<Decoder>,
    },
}

/// The side to truncate or pad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[allow(missing_docs)]
pub enum Direction {
    Left,
    #[default]
    Right,
}

/// Which sequence of a pair to truncate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum TruncationStrategy {
    LongestFirst,
    OnlyFirst,
    OnlySecond,
}

/// The field `truncation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Truncation {
    #[serde(default)]
    pub direction: Direction,
    pub max_length: usize,
    pub strategy: TruncationStrategy,
    pub stride: usize,
    /// True if overflow is dropped. Not part of the file.
    #[serde(skip)]
    pub discards_overflow: bool,
}

/// The length to pad texts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum PaddingStrategy {
    BatchLongest,
    Fixed(usize),
}

/// The field `padding`.
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

/// A component that can be read from its JSON.
pub trait Component: Sized + serde::de::DeserializeOwned {
    /// The field that holds the parts of a sequence.
    const PARTS: &'static str;

    /// Reads `value`, which is at `path` in the file.
    ///
    /// Fails with [`Error::Unsupported`], with the path, for an unsupported type.
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
    // Fields may be missing, but a type that is not known is another error.
    let only_type = serde_json::from_value::<C>(json!({"type": name}));
    if only_type.is_err_and(|error| error.to_string().starts_with("unknown variant")) {
        return Err(Error::unsupported(format!("{path}.type"), format!("{name:?}")));
    }
    let parts = value.get(C::PARTS).and_then(Value::as_array).filter(|_| name == "Sequence");
    for (index, part) in parts.into_iter().flatten().enumerate() {
        check_types::<C>(part, &format!("{path}.{}[{index}]", C::PARTS))?;
    }
    Ok(())
}

impl Component for Normalizer {
    const PARTS: &'static str = "normalizers";
}

impl Component for PreTokenizer {
    const PARTS: &'static str = "pretokenizers";
}

impl Component for PostProcessor {
    const PARTS: &'static str = "processors";
}

impl Component for Decoder {
    const PARTS: &'static str = "decoders";
}
