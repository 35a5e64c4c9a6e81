//! A tokenizer: the components of a file, ready to run.

use std::sync::Arc;

use bpe_core::Splitter;

use crate::added::{AddedToken, AddedTokens};
use crate::decode::Decoder;
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::lists::{MergeList, TokenList};
use crate::model::{Header, Model};
use crate::normalize::Normalizer;
use crate::post;
use crate::spec::{self, Padding, Truncation};
use crate::split::{GPT2, Plan, PreTokenizer};

/// A component as the file has it, and ready to run.
type Ready<S, R> = Option<Arc<(S, R)>>;

/// Text to ids and back, as a file says. It never changes: what changes it makes a new one, which
/// shares what stays.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    model: Arc<Model>,
    added: Arc<AddedTokens>,
    normalizer: Ready<spec::Normalizer, Normalizer>,
    split: Arc<Split>,
    post_processor: Option<Arc<spec::PostProcessor>>,
    decoder: Ready<spec::Decoder, Decoder>,
    truncation: Option<Truncation>,
    padding: Option<Padding>,
}

/// One sequence: a text, or its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence<'a> {
    /// A text.
    Text(&'a str),
    /// Words that somebody split before.
    Words(&'a [String]),
}

/// What is encoded: one sequence, or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input<'a> {
    /// The first, or only one.
    pub first: Sequence<'a>,
    /// The second.
    pub second: Option<Sequence<'a>>,
}

impl Sequence<'_> {
    /// How many bytes of text it has.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Words(words) => words.iter().map(String::len).sum(),
        }
    }
}

impl Input<'_> {
    /// How many bytes of text it has.
    pub fn size(&self) -> usize {
        self.first.size() + self.second.map_or(0, |second| second.size())
    }
}

impl Tokenizer {
    pub(crate) fn new(
        header: Header,
        tokens: TokenList,
        merges: MergeList,
        pre_tokenizer: Option<spec::PreTokenizer>,
    ) -> Result<Self> {
        let (split, splitter) = Split::new(pre_tokenizer)?;
        Ok(Self {
            model: Arc::new(Model::new(header, tokens, merges, splitter)?),
            added: Arc::default(),
            normalizer: None,
            split: Arc::new(split),
            post_processor: None,
            decoder: None,
            truncation: None,
            padding: None,
        })
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn added(&self) -> &AddedTokens {
        &self.added
    }

    pub(crate) fn normalizer(&self) -> Option<&Normalizer> {
        self.normalizer.as_ref().map(|ready| &ready.1)
    }

    pub(crate) fn pre_tokenizer(&self) -> &PreTokenizer {
        &self.split.steps
    }

    pub(crate) fn decoder(&self) -> Option<&Decoder> {
        self.decoder.as_ref().map(|ready| &ready.1)
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.split.plan
    }

    /// The normalizer, as in a file.
    pub fn normalizer_spec(&self) -> Option<&spec::Normalizer> {
        self.normalizer.as_ref().map(|ready| &ready.0)
    }

    /// The pre-tokenizer, as in a file.
    pub fn pre_tokenizer_spec(&self) -> Option<&spec::PreTokenizer> {
        self.split.spec.as_ref()
    }

    /// The post-processor, as in a file.
    pub fn post_processor_spec(&self) -> Option<&spec::PostProcessor> {
        self.post_processor.as_deref()
    }

    /// The decoder, as in a file.
    pub fn decoder_spec(&self) -> Option<&spec::Decoder> {
        self.decoder.as_ref().map(|ready| &ready.0)
    }

    /// What is cut off.
    pub fn truncation(&self) -> Option<&Truncation> {
        self.truncation.as_ref()
    }

    /// What is filled up.
    pub fn padding(&self) -> Option<&Padding> {
        self.padding.as_ref()
    }

    /// Sets the normalizer.
    pub fn set_normalizer(&mut self, spec: Option<spec::Normalizer>) -> Result<()> {
        let ready = match spec {
            Some(spec) => {
                let ready = Normalizer::new(&spec, "normalizer")?;
                Some(Arc::new((spec, ready)))
            }
            None => None,
        };
        let mut added = AddedTokens::clone(&self.added);
        added.set_normalizer(ready.as_ref().map(|ready| &ready.1))?;
        (self.normalizer, self.added) = (ready, Arc::new(added));
        Ok(())
    }

    /// Sets the pre-tokenizer.
    pub fn set_pre_tokenizer(&mut self, spec: Option<spec::PreTokenizer>) -> Result<()> {
        let (split, splitter) = Split::new(spec)?;
        self.model = Arc::new(self.model.with_splitter(splitter)?);
        self.split = Arc::new(split);
        Ok(())
    }

    /// Sets the post-processor.
    pub fn set_post_processor(&mut self, spec: Option<spec::PostProcessor>) -> Result<()> {
        if let Some(spec) = &spec {
            spec.check("post_processor")?;
        }
        self.post_processor = spec.map(Arc::new);
        Ok(())
    }

    /// Sets the decoder.
    pub fn set_decoder(&mut self, spec: Option<spec::Decoder>) -> Result<()> {
        self.decoder = match spec {
            Some(spec) => {
                let ready = Decoder::new(&spec)?;
                Some(Arc::new((spec, ready)))
            }
            None => None,
        };
        Ok(())
    }

    /// Sets what is cut off as a file says, which may say what [`Tokenizer::set_truncation`]
    /// refuses.
    pub(crate) fn restore_truncation(&mut self, truncation: Option<Truncation>) {
        self.truncation = truncation;
    }

    /// Sets what is cut off.
    pub fn set_truncation(&mut self, truncation: Option<Truncation>) -> Result<()> {
        if let Some(truncation) = &truncation {
            truncation.check(self.added_tokens(false))?;
        }
        self.truncation = truncation;
        Ok(())
    }

    /// Sets what is filled up.
    pub fn set_padding(&mut self, padding: Option<Padding>) {
        self.padding = padding;
    }

    /// Whether special tokens in texts are ordinary text.
    pub fn encodes_special_tokens(&self) -> bool {
        self.added.encode_special
    }

    /// Sets that.
    pub fn set_encode_special_tokens(&mut self, value: bool) {
        Arc::make_mut(&mut self.added).encode_special = value;
    }

    /// Adds tokens; returns how many are new, or other than before.
    pub fn add_tokens(&mut self, tokens: Vec<AddedToken>) -> Result<usize> {
        let mut added = AddedTokens::clone(&self.added);
        let model_id = |content: &str| self.model.token_to_id(content);
        let count = added.add(tokens, self.model.size() as u32, model_id, self.normalizer())?;
        self.added = Arc::new(added);
        Ok(count)
    }

    /// The added tokens, by ascending id.
    pub fn added_tokens_by_id(&self) -> Vec<(u32, &AddedToken)> {
        self.added.by_id()
    }

    /// How many tokens the post-processor adds.
    pub fn added_tokens(&self, is_pair: bool) -> usize {
        self.post_processor.as_ref().map_or(0, |processor| processor.added_tokens(is_pair))
    }

    /// The id of a token.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.added.id(token).or_else(|| self.model.token_to_id(token))
    }

    /// The token of an id.
    pub fn id_to_token(&self, id: u32) -> Option<String> {
        self.added.text(id).map(str::to_owned).or_else(|| self.model.id_to_token(id))
    }

    /// The id of a token of the model.
    pub fn model_token_to_id(&self, token: &str) -> Option<u32> {
        self.model.token_to_id(token)
    }

    /// The token of the model with this id.
    pub fn model_id_to_token(&self, id: u32) -> Option<String> {
        self.model.id_to_token(id)
    }

    /// The tokens of the model, and, if asked for, the added ones.
    pub fn vocab(&self, with_added_tokens: bool) -> Vec<(String, u32)> {
        let mut tokens = self.model.vocab();
        if with_added_tokens {
            let more =
                self.added.ids().filter(|(token, _)| self.model.token_to_id(token).is_none());
            tokens.extend(more.map(|(token, id)| (token.to_owned(), id)));
        }
        tokens
    }

    /// How many that are.
    pub fn vocab_size(&self, with_added_tokens: bool) -> usize {
        let more = self.added.ids().filter(|(token, _)| self.model.token_to_id(token).is_none());
        self.model.size() + if with_added_tokens { more.count() } else { 0 }
    }

    /// Truncates and post-processes one sequence, or two.
    pub fn post_process(
        &self,
        sequences: Vec<Encoding>,
        add_special_tokens: bool,
    ) -> Result<Encoding> {
        let (truncation, processor) = (self.truncation.as_ref(), self.post_processor.as_deref());
        post::post_process(sequences, truncation, processor, add_special_tokens)
    }

    /// Fills up the encodings of a batch, if that is asked for. Returns the length.
    pub fn pad(&self, encodings: &mut [Encoding]) -> Result<usize> {
        self.padding.as_ref().map_or(Ok(0), |padding| post::pad(encodings, padding))
    }

    /// Fills up one encoding to the length of its batch.
    pub fn pad_to(&self, encoding: &mut Encoding, length: usize) -> Result<()> {
        self.padding.as_ref().map_or(Ok(()), |padding| post::pad_to(encoding, length, padding))
    }

    /// The tokens of the model and their ids, for an encoding that merges in the order of ids.
    ///
    /// Fails with [`Error::Unsupported`] where such an encoding would merge otherwise.
    pub fn ranks(&self) -> Result<Vec<(&[u8], u32)>> {
        self.model.ranks()
    }

    /// The pattern of the pre-tokenizer, if one that the core has a scanner for is all that it
    /// amounts to.
    pub fn pattern(&self) -> Option<&str> {
        match self.plan() {
            Plan::Pattern { pattern, prefix_space: false } => Some(pattern),
            _ => None,
        }
    }
}

/// What cuts text into pieces.
#[derive(Debug)]
struct Split {
    /// As the file has it.
    spec: Option<spec::PreTokenizer>,
    steps: PreTokenizer,
    plan: Plan,
}

impl Split {
    /// How text is split, and what splits it in the core.
    fn new(spec: Option<spec::PreTokenizer>) -> Result<(Self, Splitter)> {
        let steps = PreTokenizer::new(spec.as_ref())?;
        if !steps.is_byte_level() {
            return Err(Error::unsupported("pre_tokenizer", "a chain without ByteLevel"));
        }
        let scanner = |pattern: &str| Splitter::new(pattern).ok().filter(Splitter::is_family);
        let plan = Plan::new(spec.as_ref(), |pattern| scanner(pattern).is_some())?;
        let pattern = match &plan {
            Plan::Pattern { pattern, .. } => pattern.as_str(),
            _ => GPT2,
        };
        let splitter = Splitter::new(pattern)?;
        Ok((Self { spec, steps, plan }, splitter))
    }
}
