//! Reads a SentencePiece model, `.model`, as a tokenizer.

use base64::Engine;

use crate::components::added::{AddedToken, AddedTokens};
use crate::components::sentencepiece::ModelProto;
use crate::components::spec::{self, BASE64, SentencePieceDecoder, SentencePieceNormalizer};
use crate::components::split::Split;
use crate::error::{Error, Result};
use crate::models::{Algorithm, Parts, PieceKind, SentencePieceFields, TokenList, Version, kinds};
use crate::pipeline::assembly::Pipeline;

impl Pipeline {
    /// Reads a tokenizer from the bytes of a `.model`, for the ids of one version of SentencePiece.
    ///
    /// Control pieces become special tokens to which text never encodes. Fails for a malformed
    /// file, and for a charsmap that changes decoded text.
    pub fn from_sentencepiece(bytes: &[u8], version: Version) -> Result<Self> {
        let model = ModelProto::read(bytes)?;
        if !model.denormalizer.precompiled_charsmap.is_empty() {
            return Err(Error::unsupported("denormalizer_spec", "a charsmap for decoded text"));
        }
        let (mut tokens, mut scores) = (TokenList::default(), Vec::new());
        for (piece, id) in model.pieces.iter().zip(0..) {
            tokens.push(&piece.text, id);
            scores.push(f64::from(piece.score));
        }
        let fields = SentencePieceFields {
            algorithm: match model.trainer.model_type {
                2 => Algorithm::Bpe,
                3 => Algorithm::Word,
                4 => Algorithm::Char,
                _ => Algorithm::Unigram,
            },
            version,
            byte_fallback: model.trainer.byte_fallback,
            kinds: kinds(model.pieces.iter().map(|piece| piece.kind))?,
        };
        let of_kind = |kind: PieceKind| {
            let rows = model.pieces.iter().zip(&fields.kinds);
            Ok(rows
                .filter(|(_, other)| **other == kind)
                .map(|(row, _)| row.text.clone())
                .collect::<Vec<_>>())
        };
        let (control, unknown) = (of_kind(PieceKind::Control)?, of_kind(PieceKind::Unknown)?);
        let normalizer = SentencePieceNormalizer {
            precompiled_charsmap: BASE64.encode(&model.normalizer.precompiled_charsmap),
            add_dummy_prefix: model.normalizer.add_dummy_prefix,
            remove_extra_whitespaces: model.normalizer.remove_extra_whitespaces,
            escape_whitespaces: model.normalizer.escape_whitespaces,
            treat_whitespace_as_suffix: model.trainer.treat_whitespace_as_suffix,
            user_defined: of_kind(PieceKind::UserDefined)?,
        };
        let decoder = SentencePieceDecoder {
            control: control.clone(),
            unknown: unknown.into_iter().next(),
            unk_surface: model.trainer.unk_surface,
            byte_fallback: fields.byte_fallback,
            add_dummy_prefix: normalizer.add_dummy_prefix,
            remove_extra_whitespaces: normalizer.remove_extra_whitespaces,
        };
        let split = Split::new(None)?;
        let model = Parts::SentencePiece(fields, tokens, scores).build(&split)?;
        let mut tokenizer = Self::with(model, AddedTokens::default(), split);
        tokenizer.set_normalizer(Some(spec::Normalizer::SentencePiece(normalizer)))?;
        tokenizer.set_decoder(Some(spec::Decoder::SentencePiece(decoder)))?;
        tokenizer.set_encode_special_tokens(true);
        tokenizer.add_tokens(control.into_iter().map(control_token).collect())?;
        Ok(tokenizer)
    }
}

fn control_token(content: String) -> AddedToken {
    AddedToken {
        content,
        single_word: false,
        lstrip: false,
        rstrip: false,
        normalized: false,
        special: true,
    }
}
