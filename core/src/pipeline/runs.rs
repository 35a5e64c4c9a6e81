//! Encodes texts, and runs: the text between two special tokens.
//!
//! A text is encoded as by [`Pipeline::encode`] without special tokens, truncation and padding;
//! each run is encoded on its own.
//!
//! A pipeline of a file takes a request that allows all special tokens or none: other added tokens are
//! always searched for. A request other than the pipeline's costs a copy of the added tokens.

use std::borrow::Cow;

use crate::pool::Pool;
use crate::special_tokens::Selection;
use crate::{Normalization, Request};

use crate::components::added::EachRun;
use crate::components::normalize::Normalizer;
use crate::components::spec::PrependScheme;
use crate::components::split::Plan;
use crate::error::Result;
use crate::pipeline::assembly::Pipeline;
use crate::pipeline::control_tokens::Control;
use crate::pipeline::segments::{EncodeRun, Prompt};
use crate::pipeline::stable::beginning;

impl Pipeline {
    /// Returns the normalization before the search for special tokens. Normalization after the
    /// search is part of encoding a run.
    pub fn normalization(&self) -> Normalization {
        if let Some(direct) = self.direct() {
            return direct.normalization();
        }
        Normalization::None
    }

    /// Returns the workspaces that calls borrow, to clear or disable their caches.
    pub fn workspaces(&self) -> &Pool {
        if let Some(direct) = self.direct() {
            return direct.workspaces();
        }
        self.model().workspaces()
    }

    /// Appends the ids of a text.
    ///
    /// Fails with [`DisallowedSpecial`](crate::Error::DisallowedSpecial) if the text contains a disallowed name.
    pub fn encode_text(&self, text: &str, request: &Request, ids: &mut Vec<u32>) -> Result<()> {
        if let Some(direct) = self.direct() {
            return direct.encode(text, request, ids);
        }
        self.check(text, request)?;
        let tokenizer = self.under(&request.allowed)?;
        let keeps_out = tokenizer.keeps_out_made()?;
        if !keeps_out || tokenizer.is_fast() {
            let from = ids.len();
            tokenizer.append_text(text, ids)?;
            if !keeps_out || !tokenizer.control()?.are_any_made(&ids[from..]) {
                return Ok(());
            }
            ids.truncate(from);
        }
        let prompt = Prompt::of_text(&tokenizer, text, tokenizer.selection()?)?;
        prompt.encode(&tokenizer, true, ids)
    }

    /// Returns the number of tokens in a text, or any number above `limit` if there are more than
    /// `limit`; stops soon after the limit.
    pub fn count(&self, text: &str, limit: usize, request: &Request) -> Result<usize> {
        if let Some(direct) = self.direct() {
            return direct.count(text, limit, request);
        }
        self.check(text, request)?;
        let (request, mut ids) = (Request::allowing(request.allowed.clone()), Vec::new());
        if limit == usize::MAX || beginning(self, text, limit + 1, &request, &mut ids)?.is_none() {
            ids.clear();
            self.encode_text(text, &request, &mut ids)?;
        }
        Ok(ids.len())
    }

    /// Appends the ids of a run of normalized text, or of a part of a run between safe cuts.
    /// `is_first` is true if no text precedes the run.
    pub fn encode_run(&self, run: &str, is_first: bool, ids: &mut Vec<u32>) -> Result<()> {
        if let Some(direct) = self.direct() {
            return direct.encode_normal(run, &Selection::None, ids);
        }
        if self.is_fast() {
            let from = ids.len();
            let search = |run: &Cow<'_, str>, found: EachRun<'_>| match self.normalizer() {
                // Without a normalizer, tokens are already located.
                None => found(0..run.len(), None),
                Some(_) => self.added().each_normalized(run, found),
            };
            self.walk_run(run.into(), is_first, search, ids)?;
            if !self.keeps_out_made()? || !self.control()?.are_any_made(&ids[from..]) {
                return Ok(());
            }
            ids.truncate(from);
        }
        let piece = Prompt::of_text(self, run, self.selection()?)?;
        self.encode_traced(&piece, 0..run.len(), is_first, ids, &mut Vec::new())
    }

    /// Calls `work` with a function that appends the ids of a run of `prompt`.
    pub fn encode_runs(
        &self,
        prompt: &Prompt,
        work: &mut dyn FnMut(EncodeRun<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Some(direct) = self.direct() {
            let form = direct.normalization();
            return direct.encode_runs(|encode| {
                work(&mut |run, ids| encode(&form.apply(&prompt.text()[run])?, ids))
            });
        }
        if self.ignores_segments() {
            return work(&mut |run, ids| {
                let is_first = prompt.is_first(&run);
                self.encode_run(&prompt.text()[run], is_first, ids)
            });
        }
        let control = self.control()?;
        let is_found_in_run = self.normalizer().is_some() && self.added().has_normalized();
        let is_fast = self.is_fast() && !is_found_in_run;
        let mut spans = Vec::new();
        work(&mut |run, ids| {
            let from = ids.len();
            if is_fast {
                self.encode_run(&prompt.text()[run.clone()], prompt.is_first(&run), ids)?;
                if !control.are_any_made(&ids[from..]) {
                    return Ok(());
                }
                ids.truncate(from);
            }
            spans.clear();
            self.encode_run_with_spans(prompt, run, ids, &mut spans)
        })
    }

    /// Returns true if the ids of a run depend only on its text, not on its segments.
    pub fn ignores_segments(&self) -> bool {
        if self.direct().is_some() {
            return true;
        }
        let is_found_in_run = self.normalizer().is_some() && self.added().has_normalized();
        let is_made = self.control().map_or(true, Control::is_made_by_model);
        !is_found_in_run && !is_made
    }

    /// Returns true if encoding prepends text to a run. `is_first` is true if no text precedes the
    /// run.
    pub fn prepends(&self, is_first: bool) -> bool {
        self.normalizer().is_some_and(Normalizer::prepends)
            || match self.split().plan() {
                Plan::Pattern { prefix_space, .. } => *prefix_space,
                Plan::Metaspace(metaspace) => match metaspace.prepend_scheme {
                    PrependScheme::Always => true,
                    PrependScheme::First => is_first,
                    PrependScheme::Never => false,
                },
                _ => false,
            }
    }
}
