//! `bpe_engine._core`: the engine for Python. PyO3 only; every decision is in the core.
//!
//! | file | what it does |
//! |---|---|
//! | `facade` | the class that `bpe_engine.Encoding` inherits: what is called for every request |
//! | `core_bpe` | the class `CoreBPE`, and how one is made |
//! | `encode`, `decode`, `truncate`, `inspect`, `vocabulary` | its methods |
//! | `request` | `allowed_special` and `disallowed_special` |
//! | `text` | a Python `str` as UTF-8, surrogates repaired |
//! | `columns` | texts in Arrow's memory |
//! | `strings` | bytes into a Python `str` |
//! | `ids` | token ids out of Python sequences and arrays |
//! | `int_cache` | token ids into Python lists |
//! | `interned` | strings that calls look up |
//! | `buffer` | token ids into numpy |
//! | `objects` | Python objects of which a call makes many |
//! | `buffer_pool` | memory that is used again |
//! | `rows` | many texts on many threads |
//! | `gil` | work without the interpreter, and signals meanwhile |
//! | `ranks` | vocabularies out of dicts and rank files |
//! | `builtin` | the vocabularies inside the module |
//! | `prompt` | segments and conversations for `bpe_engine.prompt` |
//! | `template` | data into chat templates, and segments out of them |
//! | `vocab_tools` | learning, auditing and merging for `vocab_tools` |
//! | `train` | counting pieces and training for `vocab_tools` |
//! | `progress` | how far long work is |
//! | `hf` | tokenizer.json files |
//! | `batch` | batches for `bpe_engine.Tokenizer` |
//! | `errors` | errors of the core as Python exceptions |

mod batch;
mod buffer;
mod buffer_pool;
mod builtin;
mod caches;
mod columns;
mod core_bpe;
mod decode;
mod encode;
mod environment;
mod errors;
mod facade;
mod gil;
mod hf;
mod ids;
mod inspect;
mod int_cache;
mod interned;
mod objects;
mod progress;
mod prompt;
mod ranks;
mod request;
mod rows;
mod strings;
mod template;
mod text;
mod train;
mod truncate;
mod vocab_tools;
mod vocabulary;

use pyo3::prelude::*;

/// The native half of `bpe_engine`.
#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::batch::{EncodedRows, arrange_rows, encode_rows};
    #[pymodule_export]
    use super::buffer::TokenBuffer;
    #[pymodule_export]
    use super::core_bpe::CoreBpe;
    #[pymodule_export]
    use super::errors::disallowed_special_message;
    #[pymodule_export]
    use super::facade::NativeEncoding;
    #[pymodule_export]
    use super::hf::{
        HfEncoding, HfTokenizer, UnsupportedTokenizer, hf_added_tokens, hf_decode, hf_normalize,
        hf_pre_tokenize, hf_process,
    };
    #[pymodule_export]
    use super::prompt::{
        ConversationState, NameFinder, audit_segments, encode_segments, encode_segments_to_buffer,
        stable_prefix,
    };
    #[pymodule_export]
    use super::ranks::parse_ranks;
    #[pymodule_export]
    use super::template::{collect_segments, copy_plain};
    #[pymodule_export]
    use super::train::{CountReader, PieceCounts, merge_counts, train_bpe};
    #[pymodule_export]
    use super::vocab_tools::{
        audit_tokens, count_pieces, count_tokens, learn_merges, merge_bytes, parse_rank_lines,
        token_splits,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        #[cfg(feature = "ablation")]
        bpe_core::ablation::leave_out(&std::env::var("BPE_ENGINE_ABLATION").unwrap_or_default())
            .map_err(pyo3::exceptions::PyValueError::new_err)?;
        gil::prepare(module.py())?;
        NativeEncoding::prepare(module.py());
        Ok(())
    }
}
