//! JSON schema of a tokenizer file's components: normalizer, pre-tokenizer and so on.

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
    #[serde(alias = "Bert")]
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
    /// The normalizer of a SentencePiece model, unknown to `tokenizers`.
    SentencePiece(SentencePieceNormalizer),
}

/// The normalizer of a SentencePiece model; the fields have the names of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SentencePieceNormalizer {
    /// Rules in base64; empty if there are none.
    #[serde(deserialize_with = "canonical_base64")]
    pub precompiled_charsmap: String,
    pub add_dummy_prefix: bool,
    pub remove_extra_whitespaces: bool,
    pub escape_whitespaces: bool,
    pub treat_whitespace_as_suffix: bool,
    /// Pieces that normalization leaves unchanged.
    pub user_defined: Vec<String>,
}

/// The decoder of a SentencePiece model; the fields have the names of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SentencePieceDecoder {
    /// Pieces without text.
    pub control: Vec<String>,
    pub unknown: Option<String>,
    /// Text of the unknown piece.
    pub unk_surface: String,
    pub byte_fallback: bool,
    pub add_dummy_prefix: bool,
    pub remove_extra_whitespaces: bool,
}

/// Treatment of the matches when splitting by a pattern.
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

/// Reads base64, and returns the form that `tokenizers` writes.
fn canonical_base64<'de, D: Deserializer<'de>>(text: D) -> std::result::Result<String, D::Error> {
    let bytes = BASE64.decode(String::deserialize(text)?).map_err(D::Error::custom)?;
    Ok(BASE64.encode(bytes))
}

/// Base64 as read by `tokenizers`, with or without padding.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Settings of `Metaspace`, both as pre-tokenizer and as decoder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "MetaspaceFile")]
pub struct Metaspace {
    /// The character that replaces spaces.
    pub replacement: char,
    /// Which pieces get the replacement prepended, unless they already begin with it.
    pub prepend_scheme: PrependScheme,
    /// Whether text is split before each replacement.
    pub split: bool,
}

/// Pieces to which [`Metaspace`] prepends its replacement.
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
    split: Option<bool>,
    #[serde(rename = "str_rep")]
    _str_rep: Option<String>,
}

fn always() -> PrependScheme {
    PrependScheme::Always
}

impl TryFrom<MetaspaceFile> for Metaspace {
    type Error = &'static str;

    fn try_from(file: MetaspaceFile) -> std::result::Result<Self, Self::Error> {
        let MetaspaceFile { replacement, add_prefix_space, prepend_scheme, split, .. } = file;
        if add_prefix_space == Some(false) && prepend_scheme != PrependScheme::Never {
            return Err("add_prefix_space does not match declared prepend_scheme");
        }
        Ok(Self { replacement, prepend_scheme, split: split.unwrap_or(true) })
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

/// Tokens that replace a name in a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateToken {
    /// The name in the template.
    pub id: String,
    /// The ids to insert.
    pub ids: Vec<u32>,
    /// The text of each id.
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
    /// The decoder of a SentencePiece model, unknown to `tokenizers`.
    SentencePiece(SentencePieceDecoder),
}

/// Side to truncate or pad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[allow(missing_docs)]
pub enum Direction {
    Left,
    #[default]
    Right,
}

/// Sequence of a pair to truncate.
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
    /// Whether overflow is dropped. Not in the file.
    #[serde(skip)]
    pub discards_overflow: bool,
}

/// Length to pad texts to.
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

/// A component that can be read from JSON.
pub trait Component: Sized + serde::de::DeserializeOwned {
    /// Name of the field with the parts of a sequence.
    const PARTS: &'static str;

    /// Types that `tokenizers` recognizes by their fields, and these fields, in the order tried.
    const BY_FIELDS: Fields;

    /// Types whose name decides only if no fields do.
    const FIELDS_FIRST: &'static [&'static str] = &[];

    /// Reads `value`, which is at `path` in the file.
    ///
    /// Fails with [`Error::Unsupported`], which names the path, for an unsupported type.
    fn read(value: &Value, path: &str) -> Result<Self> {
        let typed = with_types::<Self>(value, path)?;
        serde_json::from_value(typed).map_err(|error| Error::Invalid(format!("{path}: {error}")))
    }
}

/// Names of types, with the names of their fields.
type Fields = &'static [(&'static str, &'static [&'static str])];

/// Copies the JSON of a component and adds the names of types, which older files lack.
fn with_types<C: Component>(value: &Value, path: &str) -> Result<Value> {
    let name = value.get("type").and_then(Value::as_str);
    if !value.is_object() && !value.is_array() {
        let error = format!("{path}: a component must be an object with a type");
        return Err(Error::Invalid(error));
    }
    let known = name.filter(|name| is_type::<C>(name));
    if known.is_some_and(|name| !C::FIELDS_FIRST.contains(&name)) {
        return with_types_of_parts::<C>(value.clone(), path);
    }
    let mut likely = C::BY_FIELDS.iter().filter_map(|fields| with_fields(value, fields));
    let found = likely.find_map(|likely| {
        let typed = with_types_of_parts::<C>(likely, path).ok()?;
        serde_json::from_value::<C>(typed.clone()).is_ok().then_some(typed)
    });
    match (found, name) {
        (Some(found), _) => Ok(found),
        (None, Some(_)) if known.is_some() => with_types_of_parts::<C>(value.clone(), path),
        (None, Some(name)) => Err(Error::unsupported(format!("{path}.type"), format!("{name:?}"))),
        (None, None) => {
            let error = format!("{path}: a component without a type, of unknown fields");
            Err(Error::Invalid(error))
        }
    }
}

fn is_type<C: Component>(name: &str) -> bool {
    // Fields may be missing; an unknown type is a different error.
    let only_type = serde_json::from_value::<C>(json!({"type": name}));
    !only_type.is_err_and(|error| error.to_string().starts_with("unknown variant"))
}

fn with_types_of_parts<C: Component>(mut value: Value, path: &str) -> Result<Value> {
    if value["type"] == "Sequence"
        && let Some(parts) = value.get_mut(C::PARTS).and_then(Value::as_array_mut)
    {
        for (index, part) in parts.iter_mut().enumerate() {
            *part = with_types::<C>(part, &format!("{path}.{}[{index}]", C::PARTS))?;
        }
    }
    Ok(value)
}

/// Returns the JSON of a component of this type, from an object or from a list of field values.
fn with_fields(value: &Value, (name, fields): &(&str, &[&str])) -> Option<Value> {
    let mut typed = match value {
        Value::Object(object) => object.clone(),
        Value::Array(values) if values.len() == fields.len() => {
            let fields = fields.iter().map(|&field| field.to_owned());
            fields.zip(values.iter().cloned()).collect()
        }
        _ => return None,
    };
    typed.insert("type".into(), (*name).into());
    Some(Value::Object(typed))
}

impl Component for Normalizer {
    const PARTS: &'static str = "normalizers";
    const BY_FIELDS: Fields = &[
        ("BertNormalizer", &["clean_text", "handle_chinese_chars", "strip_accents", "lowercase"]),
        ("Strip", &["strip_left", "strip_right"]),
        ("Sequence", &["normalizers"]),
        ("Replace", &["pattern", "content"]),
        ("Prepend", &["prepend"]),
    ];
    const FIELDS_FIRST: &'static [&'static str] = &["BertNormalizer"];
}

impl Component for PreTokenizer {
    const PARTS: &'static str = "pretokenizers";
    const BY_FIELDS: Fields = &[];
}

impl Component for PostProcessor {
    const PARTS: &'static str = "processors";
    const BY_FIELDS: Fields = &[
        ("RobertaProcessing", &["sep", "cls", "trim_offsets", "add_prefix_space"]),
        ("BertProcessing", &["sep", "cls"]),
        ("TemplateProcessing", &["single", "pair", "special_tokens"]),
    ];
    const FIELDS_FIRST: &'static [&'static str] =
        &["RobertaProcessing", "BertProcessing", "ByteLevel", "TemplateProcessing", "Sequence"];
}

impl Component for Decoder {
    const PARTS: &'static str = "decoders";
    const BY_FIELDS: Fields = &[
        ("BPEDecoder", &["suffix"]),
        ("WordPiece", &["prefix", "cleanup"]),
        ("CTC", &["pad_token", "word_delimiter_token", "cleanup"]),
        ("Replace", &["pattern", "content"]),
        ("Strip", &["content", "start", "stop"]),
    ];
}
