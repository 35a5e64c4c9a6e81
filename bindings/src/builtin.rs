//! The vocabularies inside the module.

use bpe_core::{Vocabulary, rank_file};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::OrRaise;

const FILES: [(&str, &[u8]); 5] = [
    ("r50k_base", include_bytes!("../../data/r50k_base.tiktoken")),
    ("p50k_base", include_bytes!("../../data/p50k_base.tiktoken")),
    ("cl100k_base", include_bytes!("../../data/cl100k_base.tiktoken")),
    ("o200k_base", include_bytes!("../../data/o200k_base.tiktoken")),
    ("qwen", include_bytes!("../../data/qwen.tiktoken")),
];

/// The vocabulary of the rank file `name` (without `.tiktoken`).
pub fn builtin_vocabulary(py: Python<'_>, name: &str) -> PyResult<Vocabulary> {
    let Some((_, contents)) = FILES.iter().find(|(known, _)| *known == name) else {
        let known: Vec<_> = FILES.iter().map(|(known, _)| *known).collect();
        return Err(PyValueError::new_err(format!(
            "no vocabulary {name:?} in this module; there are {}",
            known.join(", ")
        )));
    };
    py.detach(|| Vocabulary::build(rank_file::parse(contents)?)).or_raise(py)
}
