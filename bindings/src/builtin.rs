//! Built-in vocabularies: images that the build script links in, read in place.

use bpe_core::Vocabulary;
use bpe_core::vocabulary::image::Aligned;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::OrRaise;

macro_rules! image {
    ($name:literal) => {{
        static IMAGE: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".image")));
        ($name, IMAGE)
    }};
}

/// Table from the build script: an image for each rank file in `data/`.
static IMAGES: &[(&str, &Aligned<[u8]>)] =
    &include!(concat!(env!("OUT_DIR"), "/builtin_images.rs"));

/// Returns the vocabulary of the rank file `name` (without `.tiktoken`), and its image.
pub fn builtin_vocabulary(name: &str) -> PyResult<(Vocabulary, &'static [u8])> {
    let Some((_, image)) = IMAGES.iter().find(|(known, _)| *known == name) else {
        let known: Vec<_> = IMAGES.iter().map(|(known, _)| *known).collect();
        return Err(PyValueError::new_err(format!(
            "unknown vocabulary {name:?}; this module has {}",
            known.join(", ")
        )));
    };
    Ok((Vocabulary::from_image(&image.0).or_raise()?, &image.0))
}
