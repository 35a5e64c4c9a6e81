//! Encodes text to ids, tokens, offsets and words, following every byte through every step.

use bpe_core::memory::{push, reserve, with_capacity};
use bpe_core::polling::poll;

use crate::encoding::{Details, Encoding};
use crate::error::Result;
use crate::offsets::{Aligned, WORK};
use crate::split::PreTokenizer;
use crate::tokenizer::Tokenizer;

/// A piece for the model, or an added token with its id.
pub(crate) type Piece = (Aligned, Option<u32>);

/// The bytes of memory that [`Tokenizer::encode_detailed`] takes per byte of text: at most 200.
pub(crate) const MEMORY: usize = 200;

/// A token: its id, its text, and the range of bytes it came from.
pub type Token = (u32, String, (usize, usize));

impl Tokenizer {
    /// Encodes a sequence, or one of its words, where `word` is then the word of all tokens.
    pub(crate) fn encode_detailed(
        &self,
        text: &str,
        type_id: u32,
        word: Option<u32>,
    ) -> Result<Encoding> {
        // Details take many small allocations, so checks for the sum first.
        reserve(&mut Vec::<u8>::new(), text.len().saturating_mul(MEMORY))?;
        if self.encoding().is_some() {
            return self.encode_plain(text, type_id, word);
        }
        self.check(text)?;
        let characters = Characters::new(text)?;
        let mut ids = Vec::new();
        let mut details = Details::default();
        for (index, piece) in (0..).zip(self.pieces(text)?) {
            for (id, token, (start, end)) in self.tokens(&piece)? {
                poll(WORK)?;
                push(&mut ids, id)?;
                push(&mut details.tokens, token)?;
                push(&mut details.offsets, (characters.index(start), characters.index(end)))?;
                push(&mut details.words, word.or(Some(index)))?;
            }
        }
        Ok(Encoding::new(ids, type_id, Some(details)))
    }

    /// Cuts a text into pieces that are not empty.
    pub(crate) fn pieces(&self, text: &str) -> Result<Vec<Piece>> {
        let original = Aligned::original(text)?;
        let mut pieces = Vec::new();
        self.added().each_raw(text, |range, id| {
            let mut stretch = original.slice(range)?;
            if id.is_some() {
                push(&mut pieces, (stretch, id))?;
                return Ok(());
            }
            if let Some(normalizer) = self.normalizer() {
                normalizer.align(&mut stretch)?;
            }
            self.added().each_normalized(&stretch.text, |range, id| {
                self.push_pieces(stretch.slice(range)?, id, true, &mut pieces)
            })
        })?;
        pieces.retain(|(piece, _)| !piece.text.is_empty());
        Ok(pieces)
    }

    /// Appends the pieces of a normalized part, or the part itself if it is an added token. `is_first`
    /// is true if its original begins the text.
    pub(crate) fn push_pieces(
        &self,
        part: Aligned,
        id: Option<u32>,
        is_first: bool,
        pieces: &mut Vec<Piece>,
    ) -> Result<()> {
        if id.is_some() {
            return Ok(push(pieces, (part, id))?);
        }
        let parts = self.split().steps().split(vec![part], is_first)?;
        reserve(pieces, parts.len())?;
        pieces.extend(parts.into_iter().map(|part| (part, None)));
        Ok(())
    }

    pub(crate) fn tokens(&self, (piece, id): &Piece) -> Result<Vec<Token>> {
        if let Some(id) = id {
            return Ok(vec![(*id, piece.text.clone(), piece.origin(0..piece.text.len()))]);
        }
        self.model_tokens(piece)
    }

    /// Encodes a piece whose characters represent bytes.
    fn model_tokens(&self, piece: &Aligned) -> Result<Vec<Token>> {
        let mut tokens = self.placed_tokens(&piece.text)?;
        for (_, _, place) in &mut tokens {
            *place = piece.origin(place.0..place.1);
        }
        Ok(tokens)
    }

    /// Encodes a piece whose characters represent bytes. Ranges count only the bytes that become
    /// tokens.
    fn placed_tokens(&self, piece: &str) -> Result<Vec<Token>> {
        let (mut tokens, mut start) = (Vec::new(), 0);
        self.model().encode_piece(piece, |id, length| {
            poll(WORK)?;
            let token = self.model().id_to_token(id).unwrap_or_default();
            push(&mut tokens, (id, token, (start, start + length)))?;
            start += length;
            Ok(())
        })?;
        Ok(tokens)
    }

    /// Runs only the model on a text. Returns each token with its range of bytes in the text.
    ///
    /// Characters that become no token are left out, as in `tokenizers`.
    pub fn tokenize(&self, text: &str) -> Result<Vec<Token>> {
        self.placed_tokens(text)
    }
}

/// A piece and its range in the text, in characters.
pub type PlacedPiece = (String, (usize, usize));

/// Runs only the pre-tokenizer on a text.
pub(crate) fn pre_tokenize(pre_tokenizer: &PreTokenizer, text: &str) -> Result<Vec<PlacedPiece>> {
    let characters = Characters::new(text)?;
    let pieces = pre_tokenizer.split(vec![Aligned::original(text)?], true)?.into_iter();
    let place = |piece: Aligned| {
        let (start, end) = piece.origin(0..piece.text.len());
        (piece.text, (characters.index(start), characters.index(end)))
    };
    Ok(pieces.filter(|piece| !piece.text.is_empty()).map(place).collect())
}

/// Converts byte offsets to character offsets.
enum Characters {
    Ascii,
    Indices(Vec<usize>),
}

impl Characters {
    fn new(text: &str) -> Result<Self> {
        if text.is_ascii() {
            return Ok(Self::Ascii);
        }
        let mut indices = with_capacity(text.len() + 1)?;
        for (index, character) in text.chars().enumerate() {
            indices.resize(indices.len() + character.len_utf8(), index);
        }
        indices.push(indices.last().map_or(0, |last| last + 1));
        Ok(Self::Indices(indices))
    }

    fn index(&self, byte: usize) -> usize {
        match self {
            Self::Ascii => byte,
            Self::Indices(indices) => indices.get(byte).copied().unwrap_or(byte),
        }
    }
}
