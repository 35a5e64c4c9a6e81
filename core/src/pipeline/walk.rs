//! The walk over a text: added tokens, normalizer, added tokens, pre-tokenizer, model.
//!
//! There is one walk, whose results go to a [`Tracer`]: a list of ids, or a
//! [`PieceTracer`](crate::pipeline::tokens::PieceTracer) for pieces with the origin of each byte.

use std::borrow::Cow;
use std::ops::Range;

use crate::ablation::Mechanism;
use crate::memory::push;

use crate::components::added::EachRun;
use crate::components::normalize::Normalizer;
use crate::components::spec::{Metaspace, PrependScheme};
use crate::components::split::Plan;
use crate::error::Result;
use crate::models::RunPosition;
use crate::pipeline::assembly::Pipeline;

/// Form of the text that a walk passes from step to step.
pub(crate) trait Form {
    /// A run of text.
    type Text<'a>;

    /// Returns part of the original text.
    fn part(text: &str, range: Range<usize>) -> Result<Self::Text<'_>>;

    /// Returns part of a run.
    fn slice<'a>(text: &'a Self::Text<'_>, range: Range<usize>) -> Result<Self::Text<'a>>;

    /// Returns the run in the form that the next step reads.
    fn as_str<'a>(text: &'a Self::Text<'_>) -> &'a str;

    /// Normalizes a run.
    fn normalize(text: &mut Self::Text<'_>, normalizer: &Normalizer) -> Result<()>;
}

/// Text without the origins of its bytes.
pub(crate) struct Plain;

impl Form for Plain {
    type Text<'a> = Cow<'a, str>;

    fn part(text: &str, range: Range<usize>) -> Result<Cow<'_, str>> {
        Ok(Cow::Borrowed(&text[range]))
    }

    fn slice<'a>(text: &'a Cow<'_, str>, range: Range<usize>) -> Result<Cow<'a, str>> {
        Ok(Cow::Borrowed(&text[range]))
    }

    fn as_str<'a>(text: &'a Cow<'_, str>) -> &'a str {
        text
    }

    fn normalize(text: &mut Cow<'_, str>, normalizer: &Normalizer) -> Result<()> {
        *text = normalizer.apply(std::mem::take(text))?;
        Ok(())
    }
}

/// A run of text in the form that a tracer receives.
type Text<'a, T> = <<T as Tracer>::Form as Form>::Text<'a>;

/// Receives the results of a walk.
pub(crate) trait Tracer {
    /// Form of the text that the tracer receives.
    type Form: Form;

    /// Receives an added token.
    fn added(&mut self, text: &Text<'_, Self>, id: u32) -> Result<()>;

    /// Receives a run for the pre-tokenizer and the model. `start` is its position in the run that
    /// begins a text; `None` in other runs.
    fn run(
        &mut self,
        pipeline: &Pipeline,
        text: Text<'_, Self>,
        start: Option<usize>,
    ) -> Result<()>;

    /// Receives a run before normalization. Returns false if the run must go through all steps.
    fn shortcut(&mut self, _: &Pipeline, _: &Text<'_, Self>) -> Result<bool> {
        Ok(false)
    }
}

impl Pipeline {
    /// Whether a plain list of ids can serve as the tracer.
    pub(crate) fn is_fast(&self) -> bool {
        // Random tokens are drawn only once, with all details.
        if self.model().sampling().is_some() {
            return false;
        }
        match self.split().plan() {
            Plan::Rewritten => false,
            Plan::Marked(..) => self.model().takes_words(),
            // The normalizer may remove text from the start.
            Plan::Metaspace(Metaspace { prepend_scheme: PrependScheme::First, .. }) => {
                self.normalizer().is_none()
            }
            _ => true,
        }
    }

    /// Appends the ids of a sequence, or of one of its words.
    pub(crate) fn append_ids(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        match self.direct() {
            Some(direct) => direct.encode(text, self.request(), ids),
            None => self.walk(text, ids),
        }
    }

    pub(crate) fn walk<T: Tracer>(&self, text: &str, tracer: &mut T) -> Result<()> {
        self.check(text, self.request())?;
        self.begin(text);
        self.added().each_raw(text, |range, id| {
            let is_first = range.start == 0;
            let part = T::Form::part(text, range)?;
            match id {
                Some(id) => tracer.added(&part, id),
                None => {
                    let search = |run: &Text<'_, T>, found: EachRun<'_>| {
                        self.added().each_normalized(T::Form::as_str(run), found)
                    };
                    self.walk_run(part, is_first, search, tracer)
                }
            }
        })
    }

    /// Walks over a run: text without added tokens that are searched for before normalization.
    /// `is_first` is true if the run begins the text. `search` finds other added tokens in the
    /// normalized run.
    pub(crate) fn walk_run<'a, T: Tracer>(
        &self,
        mut run: Text<'a, T>,
        is_first: bool,
        search: impl FnOnce(&Text<'a, T>, EachRun<'_>) -> Result<()>,
        tracer: &mut T,
    ) -> Result<()> {
        if tracer.shortcut(self, &run)? {
            return Ok(());
        }
        if let Some(normalizer) = self.normalizer() {
            T::Form::normalize(&mut run, normalizer)?;
        }
        if !self.added().has_normalized() {
            return tracer.run(self, run, is_first.then_some(0));
        }
        search(&run, &mut |range, id| {
            let start = is_first.then_some(range.start);
            let part = T::Form::slice(&run, range)?;
            match id {
                Some(id) => tracer.added(&part, id),
                None => tracer.run(self, part, start),
            }
        })
    }

    /// Seeds random choices for a text.
    pub(crate) fn begin(&self, text: &str) {
        if let Some(sampling) = self.model().sampling() {
            sampling.begin(text);
        }
    }
}

/// Keeps only ids, and passes whole runs to the model.
impl Tracer for Vec<u32> {
    type Form = Plain;

    fn added(&mut self, _: &Cow<'_, str>, id: u32) -> Result<()> {
        push(self, id)
    }

    fn run(&mut self, pipeline: &Pipeline, text: Cow<'_, str>, start: Option<usize>) -> Result<()> {
        let (model, split) = (pipeline.model(), pipeline.split());
        let position = match start {
            _ if pipeline.chunks().is_some() => RunPosition::Chunk,
            Some(0) => RunPosition::First,
            _ => RunPosition::Later,
        };
        model.encode_normalized(&text, position, split, self)
    }

    fn shortcut(&mut self, pipeline: &Pipeline, text: &Cow<'_, str>) -> Result<bool> {
        if let Some(chunks) = pipeline.chunks() {
            if chunks.has_names(text, pipeline.added())? {
                return Ok(false);
            }
            let (model, split) = (pipeline.model(), pipeline.split());
            chunks.append(text, model, split, pipeline.normalizer(), self)?;
            return Ok(true);
        }
        let (model, normalizer) = (pipeline.model(), pipeline.normalizer());
        if pipeline.added().has_normalized() || !pipeline.split().cuts_at_spaces() {
            return Ok(false);
        }
        if let Some(Normalizer::SentencePiece(normalizer)) = normalizer
            && Mechanism::Chunks.is_used()
            && model.encode_run(text, normalizer, self)?
        {
            return Ok(true);
        }
        match normalizer.and_then(Normalizer::marks_spaces) {
            None => Ok(false),
            Some(is_prefixed) => model.encode_marked(text, is_prefixed && !text.is_empty(), self),
        }
    }
}
