//! Finds tokens with texts, offsets and words by following each byte through each step of a walk.

use std::ops::Range;

use crate::memory::ask_for;
use crate::offsets::CharacterSpans;
use crate::polling::poll;

use crate::components::encoding::{Encoding, TokenFields};
use crate::components::normalize::Normalizer;
use crate::components::offsets::{AlignedText, WORK, joined};
use crate::components::spec;
use crate::components::split::PreTokenizer;
use crate::error::Result;
use crate::models;
use crate::pipeline::assembly::Pipeline;
use crate::pipeline::walk::{Form, Tracer};

/// Text with the origin of each byte.
pub(crate) struct Traced;

impl Form for Traced {
    type Text<'a> = AlignedText;

    fn part(text: &str, range: Range<usize>) -> Result<AlignedText> {
        AlignedText::original(text, range)
    }

    fn slice(text: &AlignedText, range: Range<usize>) -> Result<AlignedText> {
        text.slice(range)
    }

    fn as_str(text: &AlignedText) -> &str {
        &text.text
    }

    fn normalize(text: &mut AlignedText, normalizer: &Normalizer) -> Result<()> {
        normalizer.align(text)?;
        text.begin_here();
        Ok(())
    }
}

/// Calls a function with each nonempty piece, and with its id if it is an added token.
pub(crate) struct PieceTracer<F>(pub(crate) F);

impl<F: FnMut(&AlignedText, Option<u32>) -> Result<()>> Tracer for PieceTracer<F> {
    type Form = Traced;

    fn added(&mut self, text: &AlignedText, id: u32) -> Result<()> {
        if text.text.is_empty() { Ok(()) } else { self.0(text, Some(id)) }
    }

    fn run(&mut self, pipeline: &Pipeline, text: AlignedText, start: Option<usize>) -> Result<()> {
        let pieces = pipeline.split().steps().split(vec![text], start.is_some())?;
        let mut pieces = pieces.iter().filter(|piece| !piece.text.is_empty());
        pieces.try_for_each(|piece| self.0(piece, None))
    }
}

/// Maximum memory in bytes of a walk with details, per byte of text.
const MEMORY: usize = 200;

/// Fails if there is no memory for a walk with details. The walk makes many small allocations, so
/// their total is checked first.
pub(crate) fn reserve_details(text: &str) -> Result<()> {
    ask_for(text.len().saturating_mul(MEMORY))
}

/// A token: its id, its text, and the range of bytes that it covers.
pub type ModelToken = (u32, String, (usize, usize));

impl Pipeline {
    /// Encodes a sequence, or one of its words, whose tokens all get the word index `word`.
    pub(crate) fn encode_detailed(
        &self,
        text: &str,
        type_id: u32,
        word: Option<u32>,
    ) -> Result<Encoding> {
        reserve_details(text)?;
        if let Some(direct) = self.direct() {
            return self.encode_plain(direct, text, type_id, word);
        }
        let mut characters = CharacterSpans::new(text);
        let (mut ids, mut token_fields, mut index) = (Vec::new(), TokenFields::default(), 0);
        self.walk(
            text,
            &mut PieceTracer(|piece: &AlignedText, added| {
                self.each_token(piece, added, |token, (start, end)| {
                    ids.push(token.id);
                    token_fields.tokens.push(self.token_text(&token, &piece.text)?);
                    token_fields.offsets.push(characters.next(start..end));
                    token_fields.words.push(word.or(Some(index)));
                    Ok(())
                })?;
                index += 1;
                Ok(())
            }),
        )?;
        Ok(Encoding::new(ids, type_id, Some(token_fields)))
    }

    /// Calls `found` with the id of each token of a piece and its bytes in the original, until
    /// `found` fails.
    pub(crate) fn each_span(
        &self,
        piece: &AlignedText,
        added: Option<u32>,
        mut found: impl FnMut(u32, (usize, usize)) -> Result<()>,
    ) -> Result<()> {
        self.each_token(piece, added, |token, origin| found(token.id, origin))
    }

    /// Like [`Pipeline::each_span`], with whole tokens.
    fn each_token(
        &self,
        piece: &AlignedText,
        added: Option<u32>,
        mut found: impl FnMut(models::FoundToken, (usize, usize)) -> Result<()>,
    ) -> Result<()> {
        if let Some(id) = added {
            let span = 0..piece.text.len();
            let origin = piece.origin(span.clone());
            return found(models::FoundToken { id, span, shows_piece: true }, origin);
        }
        let take = &mut |token: models::FoundToken| {
            poll(WORK)?;
            if token.span.is_empty() {
                let origin = piece.empty_origin(token.span.start);
                return found(token, origin);
            }
            // Bytes of affixes extend beyond the piece.
            let end = token.span.end.min(piece.text.len());
            let start = token.span.start.min(end.saturating_sub(1));
            found(token, piece.origin(start..end))
        };
        self.model().encode_piece(&piece.text, None, take).map(drop)
    }

    fn token_text(&self, token: &models::FoundToken, piece: &str) -> Result<String> {
        match token.shows_piece {
            true => joined(&piece[token.span.clone()], ""),
            false => Ok(self.model().id_to_token(token.id).unwrap_or_default()),
        }
    }

    /// Runs only the model on a text. Returns each token with its byte range in the text.
    ///
    /// Characters without a token are dropped, as in `tokenizers`.
    pub fn tokenize(&self, text: &str) -> Result<Vec<ModelToken>> {
        let mut tokens = Vec::new();
        self.model().encode_piece(text, None, &mut |token| {
            let span = (token.span.start, token.span.end);
            tokens.push((token.id, self.token_text(&token, text)?, span));
            Ok(())
        })?;
        Ok(tokens)
    }
}

/// A piece and its range in the text, in characters.
pub type PlacedPiece = (String, (usize, usize));

/// Returns a function that runs only the pre-tokenizer on a text.
pub fn pre_tokenize(
    spec: &spec::PreTokenizer,
) -> Result<impl Fn(&str) -> Result<Vec<PlacedPiece>> + use<>> {
    let ready = PreTokenizer::new(Some(spec))?;
    Ok(move |text: &str| {
        let mut characters = CharacterSpans::new(text);
        let whole = vec![AlignedText::original(text, 0..text.len())?];
        let pieces = ready.split(whole, true)?.into_iter();
        let place = |piece: AlignedText| {
            let (start, end) = piece.origin(0..piece.text.len());
            (piece.text, characters.next(start..end))
        };
        Ok(pieces.filter(|piece| !piece.text.is_empty()).map(place).collect())
    })
}
