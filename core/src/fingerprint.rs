//! The fingerprint of an encoding: the SHA-256 digest of everything that decides ids, in canonical
//! form.

use crate::direct::Direct;
use crate::error::Result;
use crate::normalize::Normalization;

/// A SHA-256 digest.
pub type Digest = [u8; 32];

/// Builds a canonical form: numbers are little-endian, strings follow their length.
#[derive(Debug, Default)]
pub struct Canonical(Vec<u8>);

impl Canonical {
    /// Creates a form that begins with its name and version, and reserves `size` bytes.
    pub fn new(name: &str, size: usize) -> Canonical {
        let mut form = Self::default();
        form.0.reserve(size.saturating_add(name.len() + 8));
        form.string(name.as_bytes());
        form
    }

    /// Appends a number.
    pub fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Appends a string.
    pub fn string(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Returns the bytes of the form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Direct {
    /// Returns the fingerprint. `sha256` hashes the canonical form on the first call.
    ///
    /// The form: the pattern; the normalization, `""` or `"NFC"`; the number of special tokens, and
    /// the id and name of each, by id and name; the number of other tokens, and the id and bytes of
    /// each, by id.
    ///
    /// ```
    /// use bpe_core::{Direct, Error, SpecialTokens, Splitter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::build((0..=255).map(|byte| (vec![byte], byte.into())).collect())?;
    /// let encoding = Direct::new(vocabulary, Splitter::new(r"\w+|\W")?, SpecialTokens::new([])?)?;
    /// let sizes = encoding.fingerprint(|form| Ok([form.len() as u8; 32]))?;
    /// assert_eq!(encoding.fingerprint(|_| Err(Error::Interrupted))?, sizes);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn fingerprint(&self, sha256: impl FnOnce(&[u8]) -> Result<Digest>) -> Result<Digest> {
        let make = || sha256(self.canonical_form().as_bytes()).map(Box::new);
        self.digest().get_or_try_init(make).copied()
    }

    fn canonical_form(&self) -> Canonical {
        let vocabulary = self.vocabulary();
        let tokens = || (0..vocabulary.len() as u32).map(|rank| vocabulary.token(rank));
        let mut special: Vec<(u32, &str)> =
            self.special_tokens().iter().map(|(name, id)| (id, name)).collect();
        special.sort_unstable();
        let names: usize = special.iter().map(|(_, name)| name.len() + 16).sum();
        let pattern = self.splitter().pattern();
        let size = pattern.len() + names + tokens().map(|token| token.len() + 16).sum::<usize>();
        let mut form = Canonical::new("bpe_engine encoding 1", size + 64);
        form.string(pattern.as_bytes());
        form.string(match self.normalization() {
            Normalization::None => b"",
            Normalization::Nfc => b"NFC",
        });
        form.number(special.len() as u64);
        for (id, name) in special {
            form.number(id.into());
            form.string(name.as_bytes());
        }
        form.number(vocabulary.len() as u64);
        for (rank, token) in (0..).zip(tokens()) {
            form.number(vocabulary.id(rank).into());
            form.string(token);
        }
        form
    }
}
