//! The engine behind every ability: an [`Encoding`], or the tokenizer of a file.
//!
//! An ability (counting, truncation, segments, streams ...) is written once, over [`Engine`]; a new
//! kind of tokenizer implements the methods without a body, and has all of them.

#[doc(hidden)]
#[doc(hidden)]
pub mod conversation;
#[doc(hidden)]
pub mod heal;
pub mod inspect;
#[doc(hidden)]
pub mod quiet;
pub mod segments;
pub mod shown;
#[doc(hidden)]
pub mod threads;
pub mod truncate;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use unicode_normalization::char::canonical_combining_class;

use crate::char_boundary::{ceil, floor};
use crate::encoding::Encoding;
use crate::engine::conversation::beginning;
use crate::engine::segments::{Fixed, FixedIds, Prompt};
use crate::engine::shown::ByteRuns;
use crate::engine::truncate::Cutter;
use crate::error::{Error, Result};
use crate::fingerprint::Digest;
use crate::memory::{append, reserve, with_capacity};
use crate::normalize::{Normalization, starts_stretch};
use crate::offsets::{TokenEnd, ends_of};
use crate::polling::poll;
use crate::pool::Pool;
use crate::request::{Disallowed, Request};
use crate::sink::{Count, Pieces};
use crate::special_tokens::{Selection, SpecialTokens};
use crate::stream_pool::StreamTables;
use crate::token_table::TokenTable;

/// Maps bytes of a changed text to bytes of the original.
pub type Originals<'a> = Box<dyn Fn(Range<usize>) -> Range<usize> + 'a>;

/// Appends the ids of a run of a prompt, given by its bytes.
pub type EncodeRun<'a> = &'a mut dyn FnMut(Range<usize>, &mut Vec<u32>) -> Result<()>;

/// Turns text into ids and back: an [`Encoding`], or the tokenizer of a `tokenizer.json`.
///
/// The text between two special tokens is a run. Each run is encoded on its own. An engine that
/// cannot honor a [`Request`] refuses it.
///
/// ```
/// use bpe_core::{Encoding, Engine, Request, SpecialTokens, Splitter, Vocabulary};
///
/// let vocabulary = Vocabulary::build((0..=255).map(|byte| (vec![byte], byte.into())).collect())?;
/// let encoding = Encoding::new(vocabulary, Splitter::new(r"\w+|\W")?, SpecialTokens::new([])?)?;
/// let engine: &dyn Engine = &encoding;
/// assert_eq!(engine.count("abc", usize::MAX, &Request::ORDINARY)?, 3);
/// assert_eq!(engine.truncate("abc", 2, &Request::ORDINARY)?, 2);
/// # Ok::<(), bpe_core::Error>(())
/// ```
pub trait Engine: Send + Sync {
    // ---- Parts ----

    /// Returns the special tokens that segments may name.
    fn special_tokens(&self) -> Result<&SpecialTokens>;

    /// Returns the normalization that comes before the search for special tokens. One that comes
    /// after it is part of encoding a run.
    fn normalization(&self) -> Normalization;

    /// Returns true if `id` is the id of a token.
    fn has_token(&self, id: u32) -> bool;

    /// Returns the workspaces that calls borrow, with their caches: to clear or disable them.
    fn workspaces(&self) -> &Pool;

    /// Returns the bytes that each id adds to a text after others.
    fn token_table(&self) -> Result<&Arc<TokenTable>>;

    /// Returns the token tables for streams, which show text before all of it is known.
    fn stream_tables(&self) -> Result<StreamTables>;

    /// Returns the hash of all that decides the ids. `sha256` hashes on the first call.
    fn fingerprint(&self, sha256: &mut dyn FnMut(&[u8]) -> Result<Digest>) -> Result<Digest>;

    /// Returns the form of a text in which control strings are compared, and the way back.
    fn control_form<'a>(&self, text: &'a str) -> Result<(Cow<'a, str>, Originals<'a>)>;

    // ---- Whole texts ----

    /// Appends the ids of a text.
    ///
    /// Fails with [`Error::DisallowedSpecial`] if the text contains a disallowed name.
    fn encode_text(&self, text: &str, request: &Request, ids: &mut Vec<u32>) -> Result<()>;

    /// Returns the ids of a text, and for each the bytes of the text that it comes from, widened to
    /// whole characters: tokens that share a character overlap.
    ///
    /// Fails as [`Engine::encode_text`] does.
    fn encode_with_spans(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        self.check(text, request)?;
        let prompt = Prompt::of_text(self, text, &request.allowed)?;
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        prompt.encode_with_spans(self, &mut ids, &mut spans)?;
        Ok((ids, spans))
    }

    /// Like [`Engine::encode_with_spans`], but a token has only the bytes it spells of a character, where
    /// these are bytes of the text.
    fn encode_with_bytes(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let (ids, mut spans) = self.encode_with_spans(text, request)?;
        narrow(self, text, &ids, &mut spans)?;
        Ok((ids, spans))
    }

    /// Returns the ids of a text, and for each its bytes as the format of the tokenizer places them:
    /// as [`Engine::encode_with_bytes`] unless the format says otherwise.
    fn encode_with_places(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        self.encode_with_bytes(text, request)
    }

    /// Returns where tokens of a text end, and how many it has. Tokens with numbers outside `wanted`
    /// may be missing, and after its end they need not be counted.
    fn token_ends(
        &self,
        text: &str,
        allowed: &Selection,
        wanted: Range<usize>,
    ) -> Result<(Vec<TokenEnd>, usize)> {
        let _ = wanted;
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        let prompt = Prompt::of_text(self, text, allowed)?;
        prompt.encode_with_spans(self, &mut ids, &mut spans)?;
        Ok((ends_of(&spans), ids.len()))
    }

    /// Returns the special tokens in a text: their names, and their bytes in the text.
    fn find_special(&self, text: &str) -> Result<Vec<(&str, Range<usize>)>>;

    // ---- Segments ----

    /// Finds the special tokens of one segment that do not depend on its neighbors.
    fn find_in_segment(&self, text: &str, allowed: &Selection) -> Result<Vec<(Range<usize>, u32)>>;

    /// Finds the other special tokens of a prompt once all of its segments are known.
    fn find_in_prompt(&self, prompt: &mut Prompt) -> Result<()>;

    /// Finds the special tokens of a normalized text. Returns how many of `earlier`, those of another
    /// text with the same first `known` bytes, are the first of them, and all behind these.
    fn find_in_text(
        &self,
        text: &str,
        allowed: &Selection,
        known: usize,
        earlier: &[Fixed],
    ) -> Result<(usize, Vec<Fixed>)>;

    /// Appends the special tokens of a normalized text that stay the same whatever follows it.
    /// Returns the first byte from which more text may form another special token.
    fn find_settled(
        &self,
        text: &str,
        allowed: &Selection,
        fixed: &mut Vec<Fixed>,
    ) -> Result<usize>;

    /// Appends the ids of a run of normalized text, or of a part of one between safe cuts.
    /// `is_first` is true if nothing comes before it.
    fn encode_run(&self, run: &str, is_first: bool, ids: &mut Vec<u32>) -> Result<()>;

    /// Calls `work` with a function that appends the ids of a run of `prompt`.
    fn encode_runs(
        &self,
        prompt: &Prompt,
        work: &mut dyn FnMut(EncodeRun<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Appends the ids of a run of `prompt`, and for each the bytes of the prompt it came from.
    fn encode_run_with_spans(
        &self,
        prompt: &Prompt,
        run: Range<usize>,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()>;

    /// Returns true if the ids of a run depend on its text alone, not on the segments it came from.
    fn ignores_segments(&self) -> bool;

    /// Returns true if the texts of a run's ids are the run, one after the other.
    fn keeps_text(&self, run: &str) -> Result<bool>;

    /// Returns the length of the text of an id, which a run that keeps its text became.
    fn text_size(&self, id: u32) -> usize;

    // ---- Where a text can be cut ----

    /// Returns the first position in a run, from byte `near` on, where it can be cut without
    /// changing an id. Whether a position is safe depends on the characters on both sides of it
    /// only.
    fn safe_cut(&self, run: &str, near: usize) -> Option<usize>;

    /// [`Engine::safe_cut`] where the rest, encoded alone, may have other ids.
    fn beginning_cut(&self, run: &str, near: usize) -> Option<usize> {
        self.safe_cut(run, near)
    }

    /// Returns true if tokens depend on a few hundred bytes around them only, even where there is
    /// nowhere to cut.
    fn is_local(&self) -> bool;

    /// Returns true if text is put before a run when it is encoded. `is_first` is true if nothing
    /// comes before the run.
    fn prepends(&self, is_first: bool) -> bool {
        let _ = is_first;
        false
    }

    /// Returns true if special tokens may take adjacent white space.
    fn takes_space(&self) -> bool {
        false
    }

    // ---- Decoding ----

    /// Appends the bytes that an id adds to a text after others.
    fn append_token(&self, id: u32, bytes: &mut Vec<u8>) -> Result<()>;

    /// Returns the form in which the tokens of a text have its bytes, after a space at most, so that
    /// what follows a text changes no byte before its last character.
    ///
    /// Fails where tokens may have other bytes, or where what follows may change more.
    fn token_form(&self) -> Result<Normalization> {
        Ok(self.normalization())
    }

    /// Fails if later text may change the end of a prompt: its last token, the special token `last`,
    /// or, with `is_inside`, the character that the prompt ends inside.
    fn check_end(&self, last: Option<u32>, is_inside: bool) -> Result<()> {
        let _ = (last, is_inside);
        Ok(())
    }

    /// Returns the combining class of a character in the tables of [`Engine::token_form`], which may be
    /// from another version of Unicode.
    fn mark_class(&self, character: char) -> u8 {
        canonical_combining_class(character)
    }

    /// Returns how many of the first of `bytes`, made of the tokens of `ids`, decoding leaves out.
    fn left_out(&self, ids: &[u32], bytes: &[u8]) -> Result<usize> {
        let _ = (ids, bytes);
        Ok(0)
    }

    /// Returns how decoding shows tokens of single bytes, which it takes together; `None` if it takes
    /// the bytes of all tokens together, and shows U+FFFD for each beginning of a character.
    fn byte_runs(&self) -> Option<ByteRuns> {
        None
    }

    /// Returns true if an id is part of a [byte run](Engine::byte_runs).
    fn is_byte(&self, id: u32) -> Result<bool> {
        let _ = id;
        Ok(false)
    }

    // ---- Abilities ----

    /// Fails with [`Error::DisallowedSpecial`] if a text contains a disallowed name.
    fn check(&self, text: &str, request: &Request) -> Result<()> {
        match request.disallowed {
            Disallowed::None => Ok(()),
            _ => request.check(self.special_tokens()?, &self.normalization().apply(text)?),
        }
    }

    /// Returns the number of tokens of a text, or some number above `limit` if there are more than
    /// `limit`: then hardly more of the text is read.
    fn count(&self, text: &str, limit: usize, request: &Request) -> Result<usize> {
        self.check(text, request)?;
        let (request, mut ids) = (Request::allowing(request.allowed.clone()), Vec::new());
        if limit == usize::MAX || beginning(self, text, limit + 1, &request, &mut ids)?.is_none() {
            ids.clear();
            self.encode_text(text, &request, &mut ids)?;
        }
        Ok(ids.len())
    }

    /// Appends the ids of a text, as [`Engine::encode_text`] does, on up to `threads` threads.
    ///
    /// The text is cut where that changes no id: at special tokens, and at safe cuts. Short texts,
    /// and texts without such a position, are encoded on this thread alone.
    fn encode_on_threads(
        &self,
        text: &str,
        request: &Request,
        threads: usize,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        threads::encode(self, text, request, threads, ids)
    }

    /// Returns the length in bytes of a prefix of `text` that ends where a token of `text` ends and
    /// that encodes to at most `max_tokens` tokens.
    fn truncate(&self, text: &str, max_tokens: usize, request: &Request) -> Result<usize> {
        Cutter::new(self, text, request)?.prefix(max_tokens)
    }

    /// Returns the start of a suffix of `text` that begins where a token of `text` ends and that
    /// encodes to at most `max_tokens` tokens.
    fn truncate_left(&self, text: &str, max_tokens: usize, request: &Request) -> Result<usize> {
        Cutter::new(self, text, request)?.suffix(max_tokens)
    }

    /// Returns the range that [`Engine::truncate`] (from the left, [`Engine::truncate_left`])
    /// keeps of a text that begins (ends) with `part`, which is not all of it. Returns `None` if
    /// `part` is too short to know.
    ///
    /// The last (first) character of `part` may differ from the text's. Disallowed names are
    /// looked for in `part` only.
    fn truncate_part(
        &self,
        part: &str,
        max_tokens: usize,
        from_left: bool,
        request: &Request,
    ) -> Result<Option<Range<usize>>> {
        Cutter::of_part(self, part, request)?.kept(max_tokens, from_left)
    }

    /// Cuts `text` into chunks that end where tokens of `text` end and that encode to at most
    /// `max_tokens` tokens each. Each begins with up to `overlap` tokens of the end of the one
    /// before; `overlap` must be smaller than `max_tokens`.
    ///
    /// Only where the characters between two token ends do not fit into one chunk are they cut
    /// apart. Fails with [`Error::ChunkTooSmall`] if one character does not fit.
    fn chunk(
        &self,
        text: &str,
        max_tokens: usize,
        overlap: usize,
        request: &Request,
    ) -> Result<Vec<Range<usize>>> {
        truncate::chunk(Cutter::new(self, text, request)?, max_tokens, overlap)
    }

    /// Returns true if encoding the text of `ids` gives `ids`, with the ids of special tokens as
    /// special tokens and the text between them as ordinary text.
    fn is_canonical(&self, ids: &[u32]) -> Result<bool> {
        inspect::is_canonical(self, ids)
    }

    /// Appends the bytes that `ids` are decoded to.
    fn append_bytes(&self, ids: &[u32], bytes: &mut Vec<u8>) -> Result<()> {
        append(bytes, &self.decode_with_starts(ids)?.0)
    }

    /// Decodes `ids` to bytes, and returns where the bytes of each id start.
    fn decode_with_starts(&self, ids: &[u32]) -> Result<(Vec<u8>, Vec<usize>)> {
        let (mut bytes, mut starts) = (Vec::new(), with_capacity(ids.len())?);
        for &id in ids {
            poll(1)?;
            starts.push(bytes.len());
            self.append_token(id, &mut bytes)?;
        }
        let first = self.left_out(ids, &bytes)?;
        if first > 0 {
            bytes.drain(..first);
            starts.iter_mut().for_each(|start| *start = start.saturating_sub(first));
        }
        Ok((bytes, starts))
    }
}

impl Engine for Encoding {
    fn special_tokens(&self) -> Result<&SpecialTokens> {
        Ok(self.special_tokens())
    }

    fn normalization(&self) -> Normalization {
        self.normalization()
    }

    fn has_token(&self, id: u32) -> bool {
        self.token_bytes(id).is_some()
    }

    fn workspaces(&self) -> &Pool {
        self.workspaces()
    }

    fn token_table(&self) -> Result<&Arc<TokenTable>> {
        self.token_table()
    }

    fn stream_tables(&self) -> Result<StreamTables> {
        Ok(StreamTables { after: self.token_table()?.clone(), first: None, skips_unknown: false })
    }

    fn fingerprint(&self, sha256: &mut dyn FnMut(&[u8]) -> Result<Digest>) -> Result<Digest> {
        self.fingerprint(sha256)
    }

    fn control_form<'a>(&self, text: &'a str) -> Result<(Cow<'a, str>, Originals<'a>)> {
        let (normal, alignment) = self.normalization().align(text)?;
        Ok((normal, Box::new(move |span| alignment.original(span))))
    }

    fn encode_text(&self, text: &str, request: &Request, ids: &mut Vec<u32>) -> Result<()> {
        self.encode(text, request, ids)
    }

    fn encode_with_spans(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let aligned = self.encode_aligned(text, request)?;
        let mut spans = with_capacity(aligned.ids.len())?;
        for span in aligned.spans(self) {
            spans.push(span?);
        }
        Ok((aligned.ids, spans))
    }

    fn encode_with_bytes(
        &self,
        text: &str,
        request: &Request,
    ) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        if !self.keeps_text(text)? {
            let (ids, mut spans) = self.encode_with_spans(text, request)?;
            narrow(self, text, &ids, &mut spans)?;
            return Ok((ids, spans));
        }
        // Tokens lie side by side.
        let (mut ids, mut end) = (Vec::new(), 0);
        self.encode(text, request, &mut ids)?;
        let spans = ids
            .iter()
            .map(|&id| {
                let start = end;
                end += self.text_size(id);
                start..end
            })
            .collect::<Vec<_>>();
        Ok((ids, spans))
    }

    fn token_ends(
        &self,
        text: &str,
        allowed: &Selection,
        wanted: Range<usize>,
    ) -> Result<(Vec<TokenEnd>, usize)> {
        let aligned = self.encode_aligned_around(text, allowed, wanted)?;
        let mut ends = with_capacity(aligned.ids.len())?;
        for end in aligned.ends(self) {
            ends.push(end?);
        }
        Ok((ends, aligned.total()))
    }

    fn find_special(&self, text: &str) -> Result<Vec<(&str, Range<usize>)>> {
        let (normal, alignment) = self.normalization().align(text)?;
        let all = self.special_tokens().all();
        let mut spans = Vec::new();
        let mut from = 0;
        while let Some(found) = all.find(&normal, from) {
            let name = all.names()[found.name].as_str();
            spans.push((name, alignment.original(found.start..found.end)));
            from = found.end;
        }
        Ok(spans)
    }

    /// Searches the text before it is normalized, so that normalization forms no name. Names that
    /// normalization would change inside this text are ordinary text, as in [`Encoding::encode`].
    fn find_in_segment(&self, text: &str, allowed: &Selection) -> Result<Vec<(Range<usize>, u32)>> {
        let mut names = Vec::new();
        let mut from = 0;
        while let Some((found, id)) = self.special_tokens().find_allowed(text, from, allowed) {
            let name = found.start..found.end;
            from = found.end;
            if self.normalization() != Normalization::None
                && !survives(self.normalization(), text, &name)?
            {
                from = found.start + 1;
                continue;
            }
            names.push((name, id));
        }
        Ok(names)
    }

    fn find_in_prompt(&self, _: &mut Prompt) -> Result<()> {
        Ok(())
    }

    fn find_in_text(
        &self,
        text: &str,
        allowed: &Selection,
        known: usize,
        earlier: &[Fixed],
    ) -> Result<(usize, Vec<Fixed>)> {
        let special = self.special_tokens();
        // All names that begin this early end in the known bytes, and none is a longer one.
        let decided = known.saturating_sub(special.all().longest());
        let kept = earlier.partition_point(|fixed| fixed.start < decided);
        let last = kept.checked_sub(1).map_or(0, |last| earlier[last].end);
        let mut from = last.max(floor(text, decided));
        let mut found = Vec::new();
        while let Some((name, id)) = special.find_allowed(text, from, allowed) {
            let ids = FixedIds::Special(id);
            found.push(Fixed { start: name.start, end: name.end, ids });
            from = name.end;
        }
        Ok((kept, found))
    }

    fn find_settled(
        &self,
        text: &str,
        allowed: &Selection,
        fixed: &mut Vec<Fixed>,
    ) -> Result<usize> {
        // Asks about all names, so that a caller may allow others before more text comes.
        let open = self.special_tokens().all().open_from(text);
        *fixed = self.find_in_text(text, allowed, 0, &[])?.1;
        fixed.retain(|fixed| fixed.start < open);
        Ok(open)
    }

    fn encode_run(&self, run: &str, _: bool, ids: &mut Vec<u32>) -> Result<()> {
        self.encode_normal(run, &Selection::None, ids)
    }

    fn encode_runs(
        &self,
        prompt: &Prompt,
        work: &mut dyn FnMut(EncodeRun<'_>) -> Result<()>,
    ) -> Result<()> {
        let normalization = self.normalization();
        self.encode_stretches(|encode| {
            work(&mut |run, ids| encode(&normalization.apply(&prompt.text()[run])?, ids))
        })
    }

    fn encode_run_with_spans(
        &self,
        prompt: &Prompt,
        run: Range<usize>,
        ids: &mut Vec<u32>,
        spans: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        let (text, alignment) = self.normalization().align(&prompt.text()[run.clone()])?;
        let mut walk = Pieces::default();
        self.encode_normal(&text, &Selection::None, &mut walk)?;
        reserve(spans, walk.ids.len())?;
        spans.extend(token_spans(self, &walk).map(|bytes| {
            let original = alignment.original(bytes);
            run.start + original.start..run.start + original.end
        }));
        append(ids, &walk.ids)
    }

    fn ignores_segments(&self) -> bool {
        true
    }

    fn keeps_text(&self, run: &str) -> Result<bool> {
        // Another pattern may skip text.
        Ok(self.splitter().is_family() && self.normalization().keeps(run))
    }

    fn text_size(&self, id: u32) -> usize {
        self.token_bytes(id).map_or(0, <[u8]>::len)
    }

    fn safe_cut(&self, run: &str, near: usize) -> Option<usize> {
        self.splitter().safe_cut(run, near)
    }

    fn is_local(&self) -> bool {
        self.splitter().is_family()
    }

    fn append_token(&self, id: u32, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.extend_from_slice(self.token_bytes(id).ok_or(Error::UnknownId(id.into()))?);
        Ok(())
    }

    fn count(&self, text: &str, limit: usize, request: &Request) -> Result<usize> {
        let mut count = Count::till(limit);
        self.encode(text, request, &mut count)?;
        Ok(count.total)
    }

    fn append_bytes(&self, ids: &[u32], bytes: &mut Vec<u8>) -> Result<()> {
        self.append_bytes(ids, bytes)
    }
}

/// Narrows spans of whole characters to the bytes of their tokens, where these are bytes of the text.
pub fn narrow<E: Engine + ?Sized>(
    engine: &E,
    text: &str,
    ids: &[u32],
    spans: &mut [Range<usize>],
) -> Result<()> {
    if text.is_ascii() || engine.token_table().is_err() {
        return Ok(());
    }
    let (mut last, mut token) = (0, Vec::new());
    for (&id, span) in ids.iter().zip(spans) {
        token.clear();
        engine.append_token(id, &mut token)?;
        let start = if span.contains(&last) { last } else { span.start };
        let end = start + token.len();
        let is_same = floor(text, start) == span.start
            && end <= text.len()
            && ceil(text, end) == span.end
            && text.as_bytes()[start..end] == token;
        if is_same {
            *span = start..end;
        }
        last = span.end;
    }
    Ok(())
}

/// Returns the bytes of each id in the text that was walked over.
fn token_spans<'a>(
    encoding: &'a Encoding,
    walk: &'a Pieces,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let ends = walk.starts.iter().skip(1).map(|&(_, index)| index).chain([walk.ids.len()]);
    walk.starts.iter().zip(ends).flat_map(move |(&(start, first), end)| {
        walk.ids[first..end].iter().scan(start, move |at, &id| {
            let start = *at;
            *at += encoding.token_bytes(id).map_or(0, <[u8]>::len);
            Some(start..*at)
        })
    })
}

/// Returns true if normalizing `text` leaves the name at `name` unchanged.
fn survives(normalization: Normalization, text: &str, name: &Range<usize>) -> Result<bool> {
    // Characters below U+0300 do not combine with a neighbor.
    let next = text[name.end..].chars().next();
    if text[name.clone()].is_ascii() && next.is_none_or(|character| character < '\u{300}') {
        return Ok(true);
    }
    let starts = |&(_, character): &(usize, char)| starts_stretch(character);
    let before = text[..name.start].char_indices().rev().find(starts);
    let before = before.map_or(0, |(offset, _)| offset);
    let after = text[name.end..].char_indices().find(starts);
    let after = after.map_or(text.len(), |(offset, _)| name.end + offset);
    let mut apart = normalization.apply(&text[before..name.start])?.into_owned();
    apart.push_str(&text[name.clone()]);
    apart.push_str(&normalization.apply(&text[name.end..after])?);
    Ok(normalization.apply(&text[before..after])? == apart)
}
