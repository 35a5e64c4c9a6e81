//! `bpe_engine._core`, the pipeline for Python. Only converts between Python and Rust; all logic is
//! in the core.

mod answers;
mod audit;
mod batch;
mod buffer;
mod buffer_pool;
mod builtin;
mod caches;
mod columns;
mod decode;
mod encode;
mod environment;
mod errors;
mod fingerprint;
mod gil;
mod hf;
mod ids;
mod inspect;
mod int_cache;
mod interned;
mod labels;
mod methods;
mod objects;
mod pipeline;
mod prefix_cache;
mod progress;
mod prompt;
mod ranks;
mod ranks_only;
mod request;
mod rows;
mod shared;
mod stream_pool;
mod strings;
mod taint;
mod template;
mod text;
mod token_table;
mod token_trie;
mod train;
mod truncate;
mod vocab_tools;

use pyo3::prelude::*;

/// The native module of `bpe_engine`. It runs without the GIL (tests/engine/test_free_threading.py).
#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::{
        answers::mark_answers,
        audit::{AuditedIds, audit_segments},
        batch::{EncodedRows, RowEncoder, RowSource, arrange_rows},
        buffer::TokenBuffer,
        errors::{UnsupportedTokenizer, disallowed_special_message},
        gil::work_done,
        hf::{HfComponent, HfEncoding, hf_added_tokens, hf_component, hf_content_hash, hf_process},
        labels::Labels,
        methods::{call_method, size_of_plain},
        pipeline::{PyEncoding, PyPipeline, PyTokenizer},
        prefix_cache::SharedPrefixCache,
        prompt::{ConversationState, NameCounter, NameFinder, encode_segments, stable_prefix},
        ranks::parse_ranks,
        stream_pool::{PyStreamPool, StreamStop, whole_characters},
        taint::{cost_of_joining, join_traced},
        template::{collect_segments, copy_plain},
        token_table::PyTokenTable,
        token_trie::{PyHealed, PyTokenTrie},
        train::{CountReader, PieceCounts, merge_counts, train_bpe},
        vocab_tools::{
            audit_tokens, count_tokens, learn_merges, merge_bytes, parse_rank_lines, token_splits,
        },
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        #[cfg(feature = "ablation")]
        bpe_core::ablation::leave_out(&std::env::var("BPE_ENGINE_ABLATION").unwrap_or_default())
            .map_err(pyo3::exceptions::PyValueError::new_err)?;
        gil::prepare(module.py())?;
        PyPipeline::prepare(module.py())
    }
}
