//! `bpe_engine._core`: the engine for Python. PyO3 only; every decision is in the core.
//!
//! | file | what it does |
//! |---|---|
//! | `base` | the class `EncodingBase`: what is called for every request |
//! | `encoding` | the class `CoreBPE`: one method for each way to encode and decode |
//! | `text` | a Python `str` as UTF-8, surrogates repaired |
//! | `strings` | bytes into a Python `str` |
//! | `special` | `allowed_special` and `disallowed_special` |
//! | `ids` | token ids out of Python sequences and arrays |
//! | `ints` | token ids into Python lists |
//! | `buffer` | token ids into numpy |
//! | `batch` | many texts on many threads |
//! | `ranks` | vocabularies out of dicts and rank files |
//! | `builtin` | the vocabularies inside the module |
//! | `learn` | learning, auditing and merging for `vocab_tools` |
//! | `hf` | tokenizer.json files |
//! | `errors` | errors of the core as Python exceptions |

mod base;
mod batch;
mod buffer;
mod buffer_pool;
mod builtin;
mod encoding;
mod errors;
mod gil;
mod hf;
mod ids;
mod int_cache;
mod learn;
mod ranks;
mod special;
mod strings;
mod text;

use pyo3::prelude::*;

/// The native half of `bpe_engine`.
#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::base::EncodingBase;
    #[pymodule_export]
    use super::buffer::TokenBuffer;
    #[pymodule_export]
    use super::encoding::CoreBpe;
    #[pymodule_export]
    use super::hf::{
        HfEncoding, HfTokenizer, UnsupportedTokenizer, hf_decode, hf_normalize, hf_pre_tokenize,
    };
    #[pymodule_export]
    use super::learn::{audit_tokens, learn_merges, merge_bytes, parse_rank_lines};
    #[pymodule_export]
    use super::ranks::parse_ranks;
    #[pymodule_export]
    use super::special::disallowed_special_message;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        #[cfg(feature = "ablation")]
        bpe_core::ablation::leave_out(&std::env::var("BPE_ENGINE_ABLATION").unwrap_or_default())
            .map_err(pyo3::exceptions::PyValueError::new_err)?;
        EncodingBase::prepare(module.py());
        Ok(())
    }
}
