//! A whole file: reading and writing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use foldhash::fast::FixedState;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};
use serde_json::Value;

use crate::added::AddedTokenWithId;
use crate::error::{Error, Result};
use crate::model::{ModelSpec, Pair};
use crate::spec::{
    Component, Decoder, Normalizer, Padding, PostProcessor, PreTokenizer, Truncation,
};
use crate::tokenizer::Tokenizer;

/// A text that is not copied where the JSON has it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// Tokens and ids; none of them where it is a list, as in other models.
#[derive(Debug, Default)]
struct Vocab<'a>(Option<Vec<(Text<'a>, u32)>>);

impl<'de: 'a, 'a> Deserialize<'de> for Vocab<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct VocabVisitor;
        impl<'de> Visitor<'de> for VocabVisitor {
            type Value = Vocab<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tokens and ids")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut tokens = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    tokens.push(entry);
                }
                Ok(Vocab(Some(tokens)))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Vocab(None))
            }
        }
        deserializer.deserialize_any(VocabVisitor)
    }
}

/// A pair of tokens, spelled as one text or as two.
#[derive(Debug)]
enum Merge<'a> {
    One(Text<'a>),
    Two(Text<'a>, Text<'a>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Merge<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct MergeVisitor;
        impl<'de> Visitor<'de> for MergeVisitor {
            type Value = Merge<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("two tokens, as \"a b\" or as [\"a\", \"b\"]")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Merge<'de>, E> {
                Ok(Merge::One(Text(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Merge<'de>, E> {
                Ok(Merge::One(Text(Cow::Owned(text.to_owned()))))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let parts = (seq.next_element()?, seq.next_element()?);
                match (parts, seq.next_element::<IgnoredAny>()?) {
                    ((Some(left), Some(right)), None) => Ok(Merge::Two(left, right)),
                    _ => Err(de::Error::custom("a merge must have two tokens")),
                }
            }
        }
        deserializer.deserialize_any(MergeVisitor)
    }
}

#[derive(Debug, serde::Deserialize)]
struct ModelFile<'a> {
    r#type: Option<String>,
    dropout: Option<f32>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    fuse_unk: bool,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    #[serde(borrow, default)]
    vocab: Vocab<'a>,
    #[serde(borrow)]
    merges: Option<Vec<Merge<'a>>>,
}

#[derive(Debug, serde::Deserialize)]
struct File<'a> {
    version: Option<String>,
    #[serde(default)]
    truncation: Option<Truncation>,
    #[serde(default)]
    padding: Option<Padding>,
    #[serde(default)]
    added_tokens: Vec<AddedTokenWithId>,
    #[serde(default)]
    normalizer: Option<Value>,
    #[serde(default)]
    pre_tokenizer: Option<Value>,
    #[serde(default)]
    post_processor: Option<Value>,
    #[serde(default)]
    decoder: Option<Value>,
    #[serde(borrow)]
    model: ModelFile<'a>,
}

impl ModelFile<'_> {
    fn check(&self) -> Result<()> {
        let unsupported = |field: &str, feature: String| {
            Err(Error::unsupported(format!("model.{field}"), feature))
        };
        match self.r#type.as_deref() {
            None | Some("BPE") => {}
            Some(other) => return unsupported("type", format!("{other:?}")),
        }
        match self.dropout {
            Some(dropout) if dropout != 0.0 => {
                return unsupported("dropout", format!("a dropout of {dropout}"));
            }
            _ => {}
        }
        if self.byte_fallback {
            return unsupported("byte_fallback", "true".into());
        }
        if self.fuse_unk {
            return unsupported("fuse_unk", "true".into());
        }
        let affixes = [
            ("continuing_subword_prefix", &self.continuing_subword_prefix),
            ("end_of_word_suffix", &self.end_of_word_suffix),
        ];
        for (field, affix) in affixes {
            if let Some(affix) = affix.as_deref().filter(|affix| !affix.is_empty()) {
                return unsupported(field, format!("{affix:?}"));
            }
        }
        if self.vocab.0.is_none() || self.merges.is_none() {
            return unsupported("type", "a model other than BPE".into());
        }
        Ok(())
    }

    fn into_spec(self) -> Result<ModelSpec> {
        self.check()?;
        let mut ids: HashMap<Text<'_>, u32, FixedState> = HashMap::default();
        let vocab = self.vocab.0.unwrap_or_default();
        ids.reserve(vocab.len());
        // Of a token that comes twice the last id counts.
        ids.extend(vocab);
        let id = |token: &str, place: usize| {
            ids.get(&Text(Cow::Borrowed(token))).copied().ok_or_else(|| {
                Error::Invalid(format!("model.merges[{place}]: Token `{token}` out of vocabulary"))
            })
        };
        let mut merges = Vec::new();
        for (place, merge) in self.merges.unwrap_or_default().iter().enumerate() {
            let (left, right) = match merge {
                Merge::Two(left, right) => (&*left.0, &*right.0),
                Merge::One(text) if text.0.starts_with("#version") => continue,
                Merge::One(text) => {
                    let mut parts = text.0.split(' ');
                    match (parts.next(), parts.next(), parts.next()) {
                        (Some(left), Some(right), None) => (left, right),
                        _ => {
                            return Err(Error::Invalid(format!(
                                "model.merges[{place}]: {:?} is not two tokens with a space \
                                 between them",
                                text.0
                            )));
                        }
                    }
                }
            };
            merges.push((id(left, place)?, id(right, place)?));
        }
        let mut vocab: Vec<(String, u32)> =
            ids.into_iter().map(|(text, id)| (text.0.into_owned(), id)).collect();
        vocab.sort_unstable_by_key(|&(_, id)| id);
        if let Some([a, b]) = vocab.array_windows().find(|[a, b]| a.1 == b.1) {
            return Err(Error::unsupported(
                "model.vocab",
                format!("one id, {}, for two tokens, {:?} and {:?},", a.1, a.0, b.0),
            ));
        }
        Ok(ModelSpec {
            vocab,
            merges,
            ignore_merges: self.ignore_merges,
            unk_token: self.unk_token,
            dropout: self.dropout,
            continuing_subword_prefix: self.continuing_subword_prefix,
            end_of_word_suffix: self.end_of_word_suffix,
            fuse_unk: self.fuse_unk,
        })
    }
}

fn read<C: Component>(value: Option<&Value>, path: &str) -> Result<Option<C>> {
    value.map(|value| C::read(value, path)).transpose()
}

impl Tokenizer {
    /// Reads the JSON of a file.
    ///
    /// Fails with [`Error::Unsupported`] where the file asks for what cannot be done exactly.
    pub fn from_json(json: &str) -> Result<Self> {
        let file: File<'_> = serde_json::from_str(json)
            .map_err(|error| Error::Invalid(format!("not a tokenizer file: {error}")))?;
        if let Some(version) = file.version.as_deref().filter(|&version| version != "1.0") {
            return Err(Error::Invalid(format!("version: Unknown tokenizer version '{version}'")));
        }
        file.model.check()?;
        let normalizer = read::<Normalizer>(file.normalizer.as_ref(), "normalizer")?;
        let pre_tokenizer = read::<PreTokenizer>(file.pre_tokenizer.as_ref(), "pre_tokenizer")?;
        let processor = read::<PostProcessor>(file.post_processor.as_ref(), "post_processor")?;
        let decoder = read::<Decoder>(file.decoder.as_ref(), "decoder")?;
        let mut tokenizer = Self::new(file.model.into_spec()?, pre_tokenizer)?;
        tokenizer.set_normalizer(normalizer)?;
        tokenizer.set_post_processor(processor)?;
        tokenizer.set_decoder(decoder)?;
        tokenizer.restore_truncation(file.truncation);
        tokenizer.set_padding(file.padding);
        tokenizer.add_tokens(file.added_tokens.into_iter().map(|added| added.token).collect())?;
        Ok(tokenizer)
    }

    /// The JSON of a file that `tokenizers` reads as this tokenizer.
    pub fn to_json(&self, pretty: bool) -> Result<String> {
        let written =
            if pretty { serde_json::to_string_pretty(self) } else { serde_json::to_string(self) };
        written.map_err(|error| Error::Invalid(error.to_string()))
    }
}

impl Serialize for Tokenizer {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let added: Vec<AddedTokenWithId> = self
            .added_tokens_by_id()
            .into_iter()
            .map(|(id, token)| AddedTokenWithId { id, token: token.clone() })
            .collect();
        let mut file = serializer.serialize_struct("Tokenizer", 9)?;
        file.serialize_field("version", "1.0")?;
        file.serialize_field("truncation", &self.truncation())?;
        file.serialize_field("padding", &self.padding())?;
        file.serialize_field("added_tokens", &added)?;
        file.serialize_field("normalizer", &self.normalizer_spec())?;
        file.serialize_field("pre_tokenizer", &self.pre_tokenizer_spec())?;
        file.serialize_field("post_processor", &self.post_processor_spec())?;
        file.serialize_field("decoder", &self.decoder_spec())?;
        file.serialize_field("model", &WrittenModel(&self.model_spec()))?;
        file.end()
    }
}

struct WrittenModel<'a>(&'a ModelSpec);

impl Serialize for WrittenModel<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let spec = self.0;
        let mut model = serializer.serialize_struct("BPE", 10)?;
        model.serialize_field("type", "BPE")?;
        model.serialize_field("dropout", &spec.dropout)?;
        model.serialize_field("unk_token", &spec.unk_token)?;
        model.serialize_field("continuing_subword_prefix", &spec.continuing_subword_prefix)?;
        model.serialize_field("end_of_word_suffix", &spec.end_of_word_suffix)?;
        model.serialize_field("fuse_unk", &spec.fuse_unk)?;
        model.serialize_field("byte_fallback", &false)?;
        model.serialize_field("ignore_merges", &spec.ignore_merges)?;
        model.serialize_field("vocab", &WrittenVocab(&spec.vocab))?;
        model.serialize_field("merges", &WrittenMerges(spec))?;
        model.end()
    }
}

struct WrittenVocab<'a>(&'a [(String, u32)]);

impl Serialize for WrittenVocab<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (token, id) in self.0 {
            map.serialize_entry(token, id)?;
        }
        map.end()
    }
}

struct WrittenMerges<'a>(&'a ModelSpec);

impl Serialize for WrittenMerges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let spec = self.0;
        let token = |id: u32| {
            let place = spec.vocab.binary_search_by_key(&id, |&(_, id)| id);
            place.map_or("", |place| spec.vocab[place].0.as_str())
        };
        // Of a pair that comes twice the last place counts.
        let last: HashMap<Pair, usize, FixedState> =
            spec.merges.iter().enumerate().map(|(place, &pair)| (pair, place)).collect();
        let mut merges = serializer.serialize_seq(None)?;
        for (place, pair) in spec.merges.iter().enumerate() {
            if last[pair] == place {
                merges.serialize_element(&(token(pair.0), token(pair.1)))?;
            }
        }
        merges.end()
    }
}
