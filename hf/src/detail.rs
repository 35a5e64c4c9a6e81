//! The walk that follows every byte: ids, tokens, offsets and words.

use std::borrow::Cow;

use bpe_core::memory::reserve;

use crate::aligned::Aligned;
use crate::bytes::bytes_of;
use crate::encoding::{Details, Encoding};
use crate::error::Result;
use crate::split::PreTokenizer;
use crate::tokenizer::Tokenizer;

/// What the model sees, or an added token.
type Piece = (Aligned, Option<u32>);

/// How many bytes of memory [`Tokenizer::encode_detailed`] takes for each byte of text: 60 to 200.
const MEMORY: usize = 200;

/// A token: its id, its text, and the bytes that it came from.
pub type Token = (u32, String, (usize, usize));

impl Tokenizer {
    /// One sequence, or one word of it, whose number then is the word of all its tokens.
    pub(crate) fn encode_detailed(
        &self,
        text: &str,
        type_id: u32,
        word: Option<u32>,
    ) -> Result<Encoding> {
        // They are taken in small parts: asks for all at once.
        reserve(&mut Vec::<u8>::new(), text.len().saturating_mul(MEMORY))?;
        let characters = Characters::new(text);
        let mut ids = Vec::new();
        let mut details = Details::default();
        for (index, piece) in (0..).zip(self.pieces(text)?) {
            for (id, token, (start, end)) in self.tokens(&piece)? {
                ids.push(id);
                details.tokens.push(token);
                details.offsets.push((characters.index(start), characters.index(end)));
                details.words.push(word.or(Some(index)));
            }
        }
        Ok(Encoding::new(ids, type_id, Some(details)))
    }

    /// The pieces of a text, none of them empty.
    fn pieces(&self, text: &str) -> Result<Vec<Piece>> {
        let original = Aligned::original(text);
        let mut pieces = Vec::new();
        self.added().each_raw(text, |range, id| {
            let mut stretch = original.slice(range);
            if id.is_some() {
                pieces.push((stretch, id));
                return Ok(());
            }
            if let Some(normalizer) = self.normalizer() {
                normalizer.align(&mut stretch)?;
            }
            self.added().each_normalized(&stretch.text, |range, id| {
                let part = stretch.slice(range);
                if id.is_some() {
                    pieces.push((part, id));
                } else {
                    let parts = self.pre_tokenizer().split(vec![part])?.into_iter();
                    pieces.extend(parts.map(|part| (part, None)));
                }
                Ok(())
            })
        })?;
        pieces.retain(|(piece, _)| !piece.text.is_empty());
        Ok(pieces)
    }

    fn tokens(&self, (piece, id): &Piece) -> Result<Vec<Token>> {
        if let Some(id) = id {
            return Ok(vec![(*id, piece.text.clone(), piece.origin(0..piece.text.len()))]);
        }
        self.model_tokens(piece)
    }

    /// The tokens of a piece whose characters stand for bytes.
    fn model_tokens(&self, piece: &Aligned) -> Result<Vec<Token>> {
        let model = self.model();
        let Some(bytes) = bytes_of(&piece.text) else {
            return Err(crate::Error::Invalid(format!(
                "{:?} holds characters that stand for no byte",
                piece.text
            )));
        };
        let mut ids = Vec::new();
        model.encode_piece(&bytes, &mut ids)?;
        let mut start = 0;
        let tokens = ids.into_iter().map(|id| {
            let length = model.token_bytes(id).map_or(0, <[u8]>::len);
            let rest = piece.text[start..].chars().take(length);
            let end = start + rest.map(char::len_utf8).sum::<usize>();
            let token = (id, piece.text[start..end].to_owned(), piece.origin(start..end));
            start = end;
            token
        });
        Ok(tokens.collect())
    }

    /// What the model makes of a text by itself, each token with its bytes in the text.
    ///
    /// Of characters that stand for no byte nothing is left, and what stands around them merges, as
    /// in `tokenizers`. Fails where they are tokens themselves, or the model has one for them.
    pub fn tokenize(&self, text: &str) -> Result<Vec<Token>> {
        let mut text = Cow::Borrowed(text);
        if bytes_of(&text).is_none() {
            let (model, header) = (self.model(), self.model().header());
            if header.ignore_merges
                && let Some(id) = model.token_to_id(&text)
            {
                return Ok(vec![(id, text.to_string(), (0, text.len()))]);
            }
            let stands_for_byte =
                |character: &char| bytes_of(character.encode_utf8(&mut [0; 4])).is_some();
            let is_token =
                |character: char| model.token_to_id(character.encode_utf8(&mut [0; 4])).is_some();
            let mut others = text.chars().filter(|character| !stands_for_byte(character));
            if header.unk_token.is_none() && !others.any(is_token) {
                text = text.chars().filter(stands_for_byte).collect();
            }
        }
        self.model_tokens(&Aligned::original(&text)).map(|tokens| {
            let mut at = 0;
            let place = |(id, token, _): Token| {
                at += token.len();
                let start = at - token.len();
                (id, token, (start, at))
            };
            tokens.into_iter().map(place).collect()
        })
    }
}

/// A piece, and its place in the text, in characters.
pub type PlacedPiece = (String, (usize, usize));

/// The pieces that a pre-tokenizer makes of a text by itself.
pub(crate) fn pre_tokenize(pre_tokenizer: &PreTokenizer, text: &str) -> Result<Vec<PlacedPiece>> {
    let characters = Characters::new(text);
    let pieces = pre_tokenizer.split(vec![Aligned::original(text)])?.into_iter();
    let place = |piece: Aligned| {
        let (start, end) = piece.origin(0..piece.text.len());
        (piece.text, (characters.index(start), characters.index(end)))
    };
    Ok(pieces.filter(|piece| !piece.text.is_empty()).map(place).collect())
}

/// Byte offsets into character offsets.
enum Characters {
    Ascii,
    Indices(Vec<usize>),
}

impl Characters {
    fn new(text: &str) -> Self {
        if text.is_ascii() {
            return Self::Ascii;
        }
        let mut indices = Vec::with_capacity(text.len() + 1);
        for (index, character) in text.chars().enumerate() {
            indices.resize(indices.len() + character.len_utf8(), index);
        }
        indices.push(indices.last().map_or(0, |last| last + 1));
        Self::Indices(indices)
    }

    fn index(&self, byte: usize) -> usize {
        match self {
            Self::Ascii => byte,
            Self::Indices(indices) => indices.get(byte).copied().unwrap_or(byte),
        }
    }
}
