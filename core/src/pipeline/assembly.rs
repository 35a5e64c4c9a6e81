//! The tokenizer: all components of a file, ready to run.

use std::sync::Arc;

use crate::ablation::Mechanism;
use crate::direct::Direct;
use crate::fingerprint::Digest;
use crate::once::OnceBox;
use crate::request::Request;
use crate::special_tokens::Selection;
use crate::token_table::TokenTable;

use crate::components::added::{AddedToken, AddedTokens};
use crate::components::arrangement::{Arrangement, Arrangements};
use crate::components::decode::Decoder;
use crate::components::encoding::Encoding;
use crate::components::normalize::Normalizer;
use crate::components::post;
use crate::components::spec::{self, Padding, Truncation};
use crate::components::split::{Plan, Split};
use crate::error::{Error, Result};
use crate::models::{Model, ModelFile};
use crate::pipeline::chunks::Chunks;
use crate::pipeline::control_tokens::Control;

/// A component as in the file, and in its runnable form.
type Ready<S, R> = Option<Arc<(S, R)>>;

/// Encodes text and decodes ids as a file specifies. Clones share their components.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// For a pipeline of ranks: the stage that encodes whole texts in one loop.
    direct: Option<Arc<Direct>>,
    model: Arc<Model>,
    added: Arc<AddedTokens>,
    normalizer: Ready<spec::Normalizer, Normalizer>,
    split: Arc<Split>,
    post_processor: Option<Arc<spec::PostProcessor>>,
    /// Arrangements of the post-processor.
    arrangements: Arc<Arrangements>,
    pub(super) decoder: Ready<spec::Decoder, Decoder>,
    pub(super) truncation: Option<Truncation>,
    padding: Option<Padding>,
    /// Tokens that untrusted text must not produce; created on first use.
    control: Arc<OnceBox<Control>>,
    /// Bytes of every id; created on first use.
    pub(super) table: Arc<OnceBox<Tables>>,
    /// Cuts runs into chunks; created on first use.
    chunks: Arc<OnceBox<Option<Chunks>>>,
    /// Special tokens that texts may contain.
    request: Arc<Request>,
    /// Whether the model avoids added tokens; see [`Pipeline::keeps_out_control`].
    keeps_out_control: bool,
    /// Created on first use.
    pub(super) fingerprint: Arc<OnceBox<Digest>>,
}

/// Bytes of every id after other ids and, created on first use, at the start of a text.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) after: Arc<TokenTable>,
    pub(crate) first: OnceBox<Arc<TokenTable>>,
}

/// One sequence: a text, or its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence<'a> {
    /// A text.
    Text(&'a str),
    /// Words, split by the caller.
    Words(&'a [String]),
}

/// The input to encode: one sequence or a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input<'a> {
    /// The first or only sequence.
    pub first: Sequence<'a>,
    /// The second sequence of a pair.
    pub second: Option<Sequence<'a>>,
}

impl Sequence<'_> {
    /// Returns the size of the text in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Words(words) => words.iter().map(String::len).sum(),
        }
    }
}

impl Input<'_> {
    /// Returns the size of the text in bytes.
    pub fn size(&self) -> usize {
        self.first.size() + self.second.map_or(0, |second| second.size())
    }
}

impl Pipeline {
    /// Creates a tokenizer that has only these components.
    pub(crate) fn with(model: Model, added: AddedTokens, split: Split) -> Self {
        Self {
            direct: None,
            model: Arc::new(model),
            added: Arc::new(added),
            normalizer: None,
            split: Arc::new(split),
            post_processor: None,
            arrangements: Arc::new(Arrangements::new(None)),
            decoder: None,
            truncation: None,
            padding: None,
            control: Arc::default(),
            table: Arc::default(),
            chunks: Arc::default(),
            request: Arc::new(Request::allowing(Selection::All)),
            keeps_out_control: false,
            fingerprint: Arc::default(),
        }
    }

    /// Returns the direct stage of a pipeline of ranks: vocabulary, pattern, special tokens, and
    /// everything specific to ranks. `None` for every other pipeline.
    pub fn direct(&self) -> Option<&Arc<Direct>> {
        self.direct.as_ref()
    }

    /// Replaces the direct stage, and lists its special tokens as added tokens.
    pub(crate) fn set_direct(&mut self, direct: Arc<Direct>, added: AddedTokens) {
        self.model = Arc::new(Model::of_direct(direct.clone()));
        (self.direct, self.added) = (Some(direct), Arc::new(added));
    }

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Sets the special tokens that texts may contain. With a file, either all or none are searched
    /// for.
    pub fn set_request(&mut self, request: Request) {
        let is_ordinary = request.allowed == Selection::None;
        if self.direct.is_none() && self.encodes_special_tokens() != is_ordinary {
            self.set_encode_special_tokens(is_ordinary);
        }
        self.request = Arc::new(request);
    }

    /// Drops data derived from components that change.
    fn forget(&mut self) {
        (self.control, self.table, self.chunks, self.fingerprint) = Default::default();
    }

    /// Returns the cutter for runs, whose chunks are looked up before normalization; `None` if runs
    /// are never cut.
    pub(crate) fn chunks(&self) -> Option<&Chunks> {
        let new = || Chunks::new(&self.model, &self.split, self.normalizer(), &self.added);
        let chunks = self.chunks.get_or_init(|| Box::new(new())).as_ref();
        chunks.filter(|_| Mechanism::Chunks.is_used())
    }

    pub(crate) fn control(&self) -> Result<&Control> {
        self.control.get_or_try_init(|| Control::new(&self.added, &self.model).map(Box::new))
    }

    /// Fails for a pipeline of ranks, whose components are fixed.
    fn check_component(&self, name: &str) -> Result<()> {
        if self.direct.is_some() { Err(fixed_component(name)) } else { Ok(()) }
    }

    /// Whether encoding is random.
    pub fn is_random(&self) -> bool {
        self.model().sampling().is_some()
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn added(&self) -> &AddedTokens {
        &self.added
    }

    /// Returns the normalizer, unless it is an empty sequence, as in DeepSeek's file.
    pub(crate) fn normalizer(&self) -> Option<&Normalizer> {
        self.normalizer.as_ref().map(|ready| &ready.1).filter(|it| !it.is_empty())
    }

    pub(crate) fn decoder(&self) -> Option<&Decoder> {
        self.decoder.as_ref().map(|ready| &ready.1)
    }

    pub(crate) fn split(&self) -> &Split {
        &self.split
    }

    /// Returns the normalizer as a tokenizer file specifies it.
    pub fn normalizer_spec(&self) -> Option<&spec::Normalizer> {
        self.normalizer.as_ref().map(|ready| &ready.0)
    }

    /// Returns the pre-tokenizer as a tokenizer file specifies it.
    pub fn pre_tokenizer_spec(&self) -> Option<&spec::PreTokenizer> {
        self.split.spec()
    }

    /// Returns the post-processor as a tokenizer file specifies it.
    pub fn post_processor_spec(&self) -> Option<&spec::PostProcessor> {
        self.post_processor.as_deref()
    }

    /// Returns the post-processor's arrangement of one sequence or a pair, if it only adds ids
    /// around them.
    pub(crate) fn arrangement(
        &self,
        is_pair: bool,
        add_special_tokens: bool,
    ) -> Option<&Arrangement> {
        self.arrangements.get(is_pair, add_special_tokens)
    }

    /// Returns the decoder as a tokenizer file specifies it.
    pub fn decoder_spec(&self) -> Option<&spec::Decoder> {
        self.decoder.as_ref().map(|ready| &ready.0)
    }

    /// Returns the truncation settings.
    pub fn truncation(&self) -> Option<&Truncation> {
        self.truncation.as_ref()
    }

    /// Returns the padding settings.
    pub fn padding(&self) -> Option<&Padding> {
        self.padding.as_ref()
    }

    /// Sets the normalizer.
    pub fn set_normalizer(&mut self, spec: Option<spec::Normalizer>) -> Result<()> {
        self.check_component("normalizer")?;
        let ready = match spec {
            Some(spec) => {
                let ready = Normalizer::new(&spec, "normalizer")?;
                Some(Arc::new((spec, ready)))
            }
            None => None,
        };
        let mut added = AddedTokens::clone(&self.added);
        added.set_normalizer(ready.as_ref().map(|ready| &ready.1))?;
        if self.model.looks_up_runs() {
            // The cache holds ids of text that is not normalized.
            self.model = Arc::new(self.model.with_empty_cache(&self.split)?);
        }
        (self.normalizer, self.added) = (ready, Arc::new(added));
        self.forget();
        Ok(())
    }

    /// Sets the pre-tokenizer.
    pub fn set_pre_tokenizer(&mut self, spec: Option<spec::PreTokenizer>) -> Result<()> {
        self.check_component("pre_tokenizer")?;
        let split = Split::new(spec)?;
        self.model = Arc::new(self.model.with_split(&split)?);
        self.split = Arc::new(split);
        self.forget();
        Ok(())
    }

    /// Sets a field of the model, as in the JSON of a file.
    ///
    /// Fails with [`Error::Unsupported`] if the model does not support the value exactly.
    pub fn set_model_field(&mut self, name: &str, value: serde_json::Value) -> Result<()> {
        self.check_component("model")?;
        self.model = Arc::new(self.model.with_field(name, value, &self.split)?);
        self.forget();
        Ok(())
    }

    /// Replaces the model with a model given as JSON, as in a file. Added tokens keep their ids.
    pub fn set_model_json(&mut self, json: &str) -> Result<()> {
        self.check_component("model")?;
        let file: ModelFile = serde_json::from_str(json)
            .map_err(|error| Error::Invalid(format!("model: {error}")))?;
        self.model = Arc::new(file.parts()?.build(&self.split)?);
        self.forget();
        Ok(())
    }

    /// Sets the scores of all tokens of a Unigram model; files hold only finite, rounded scores.
    ///
    /// Fails for any other model, or for a different number of scores.
    pub fn set_scores(&mut self, scores: Vec<f64>) -> Result<()> {
        self.model = Arc::new(self.model.with_scores(scores)?);
        self.forget();
        Ok(())
    }

    /// Returns the fields of the model without its lists, including fields that files lack.
    pub fn model_fields(&self) -> Result<serde_json::Value> {
        self.model.fields()
    }

    /// Sets the post-processor.
    pub fn set_post_processor(&mut self, spec: Option<spec::PostProcessor>) -> Result<()> {
        if let Some(spec) = &spec {
            spec.check("post_processor")?;
        }
        self.arrangements = Arc::new(Arrangements::new(spec.as_ref()));
        self.post_processor = spec.map(Arc::new);
        self.fingerprint = Arc::default();
        Ok(())
    }

    /// Sets the decoder.
    pub fn set_decoder(&mut self, spec: Option<spec::Decoder>) -> Result<()> {
        self.check_component("decoder")?;
        self.table = Arc::default();
        self.decoder = match spec {
            Some(spec) => {
                let ready = Decoder::new(&spec)?;
                Some(Arc::new((spec, ready)))
            }
            None => None,
        };
        Ok(())
    }

    /// Sets the truncation.
    pub fn set_truncation(&mut self, truncation: Option<Truncation>) -> Result<()> {
        if let Some(truncation) = &truncation {
            truncation.check(self.added_tokens(false))?;
        }
        self.truncation = truncation;
        self.fingerprint = Arc::default();
        Ok(())
    }

    /// Sets the padding.
    pub fn set_padding(&mut self, padding: Option<Padding>) {
        self.padding = padding;
        self.fingerprint = Arc::default();
    }

    /// Whether special tokens in texts are encoded as ordinary text.
    pub fn encodes_special_tokens(&self) -> bool {
        self.added.encode_special
    }

    /// Sets whether special tokens in texts are encoded as ordinary text.
    pub fn set_encode_special_tokens(&mut self, value: bool) {
        Arc::make_mut(&mut self.added).encode_special = value;
        self.fingerprint = Arc::default();
    }

    /// Whether encoding avoids added tokens that the model itself would produce from ordinary text,
    /// as Unigram produces `</s>`.
    pub fn keeps_out_control(&self) -> bool {
        self.keeps_out_control
    }

    /// Sets the value of [`Pipeline::keeps_out_control`]. The default is false, as in `tokenizers`.
    pub fn set_keeps_out_control(&mut self, value: bool) {
        self.keeps_out_control = value;
        self.fingerprint = Arc::default();
    }

    /// Adds tokens. Returns the number of new or changed tokens.
    pub fn add_tokens(&mut self, tokens: Vec<AddedToken>) -> Result<usize> {
        if let Some(direct) = self.direct.clone() {
            self.forget();
            return self.add_plain_tokens(&direct, tokens);
        }
        let mut added = self.added.copy_for(&tokens)?;
        let model_id = |content: &str| self.model.token_to_id(content);
        let count = added.add(tokens, self.model.size() as u32, model_id, self.normalizer())?;
        if count == 0 {
            return Ok(0);
        }
        let is_as_before = added.has_normalized() == self.added.has_normalized()
            && added.marks() == self.added.marks();
        if !is_as_before && self.model.looks_up_runs() {
            // The cache holds chunks or pieces.
            self.model = Arc::new(self.model.with_empty_cache(&self.split)?);
        }
        self.added = Arc::new(added);
        self.forget();
        Ok(count)
    }

    /// Returns the added tokens, by ascending id.
    pub fn added_tokens_by_id(&self) -> Vec<(u32, &AddedToken)> {
        self.added.by_id()
    }

    /// Returns the number of tokens that the post-processor adds to one sequence, or to a pair.
    pub fn added_tokens(&self, is_pair: bool) -> usize {
        self.post_processor.as_ref().map_or(0, |processor| processor.added_tokens(is_pair))
    }

    /// Returns the id of a token.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.added.id(token).or_else(|| self.model.token_to_id(token))
    }

    /// Returns the token with this id.
    pub fn id_to_token(&self, id: u32) -> Option<String> {
        self.added.text(id).map(str::to_owned).or_else(|| self.model.id_to_token(id))
    }

    /// Returns the id of a token in the model.
    pub fn model_token_to_id(&self, token: &str) -> Option<u32> {
        self.model.token_to_id(token)
    }

    /// Returns the model's token with this id.
    pub fn model_id_to_token(&self, id: u32) -> Option<String> {
        self.model.id_to_token(id)
    }

    /// Returns the tokens of the model and, with `with_added_tokens`, the added tokens.
    pub fn vocab(&self, with_added_tokens: bool) -> Vec<(String, u32)> {
        let mut tokens = self.model.vocab();
        if with_added_tokens {
            let more =
                self.added.ids().filter(|(token, _)| self.model.token_to_id(token).is_none());
            tokens.extend(more.map(|(token, id)| (token.to_owned(), id)));
        }
        tokens
    }

    /// Returns the number of tokens in [`Pipeline::vocab`].
    pub fn vocab_size(&self, with_added_tokens: bool) -> Result<usize> {
        let added = match &self.direct {
            _ if !with_added_tokens => 0,
            Some(_) => self.added.tokens.len(),
            None => self.control()?.outside_model,
        };
        Ok(self.model.size() + added)
    }

    /// Truncates and post-processes one sequence or a pair. Without `overflow`, drops the part that
    /// truncation cuts off.
    pub fn post_process(
        &self,
        sequences: Vec<Encoding>,
        add_special_tokens: bool,
        overflow: bool,
    ) -> Result<Encoding> {
        let processor = self.post_processor.as_deref();
        let truncation = self.truncation.clone().map(|truncation| Truncation {
            discards_overflow: truncation.discards_overflow || !overflow,
            ..truncation
        });
        post::post_process(sequences, truncation.as_ref(), processor, add_special_tokens)
    }

    /// Pads one encoding to the length of its batch, if padding is set.
    pub fn pad_to(&self, encoding: &mut Encoding, length: usize) -> Result<()> {
        self.padding.as_ref().map_or(Ok(()), |padding| post::pad_to(encoding, length, padding))
    }

    /// Returns the pattern of the pre-tokenizer, if it only splits by a pattern with a scanner.
    pub(super) fn pattern(&self) -> Option<&str> {
        match self.split.plan() {
            Plan::Pattern { pattern, prefix_space: false } => Some(pattern),
            _ => None,
        }
    }
}

/// Returns the error for setting a component of a pipeline of ranks.
fn fixed_component(name: &str) -> Error {
    let reason = "a tokenizer made from an Encoding has no parts to set; write its tokenizer.json, and \
                  set them in the tokenizer of that file";
    Error::refused(name, reason)
}
