//! `bpe_engine._core`, the pipeline for Python. Only converts between Python and Rust; all logic is
//! in the core.
//!
//! | file | purpose |
//! |---|---|
//! | `pipeline` | the class `Pipeline`, the base class of every tokenizer class; its subclasses `Encoding` and `Tokenizer`, with the names of tiktoken and `tokenizers` |
//! | `encode`, `decode`, `truncate`, `inspect`, `caches`, `fingerprint` | methods of `Pipeline` |
//! | `ranks_only` | methods of `Encoding` that need ranks |
//! | `hf` | methods of `Tokenizer`; parts of tokenizer.json files |
//! | `shared` | the pipeline shared by the objects of one tokenizer |
//! | `environment` | configures caches from environment variables |
//! | `request` | reads `allowed_special` and `disallowed_special`, with their defaults |
//! | `text` | reads a Python `str` as UTF-8, with surrogates repaired |
//! | `columns` | reads texts in Arrow memory |
//! | `strings` | decodes bytes into a Python `str` |
//! | `ids` | reads token ids from Python sequences and arrays |
//! | `int_cache` | makes Python lists of token ids |
//! | `interned` | interned strings for keys and comparisons |
//! | `buffer` | passes token ids to numpy |
//! | `objects` | creates the Python objects of results |
//! | `buffer_pool` | reuses memory |
//! | `rows` | encodes and decodes batches on several threads |
//! | `gil` | runs work without the interpreter, and handles signals meanwhile |
//! | `ranks` | builds vocabularies from dicts and rank files |
//! | `builtin` | the vocabularies inside the module |
//! | `prompt` | segments and conversations for `bpe_engine.prompt` |
//! | `audit` | origins of ids, and masks for training |
//! | `prefix_cache` | conversations for `bpe_engine.serving` |
//! | `stream_pool` | decodes the ids of many requests as they arrive |
//! | `token_table` | the bytes of every id in one buffer |
//! | `token_trie` | the tokens that agree with given next bytes, and healed prompts |
//! | `template` | copies the variables of chat templates, and collects their output into segments |
//! | `methods` | methods of strings and dicts that chat templates call |
//! | `vocab_tools` | learning, auditing and merging for `vocab_tools` |
//! | `train` | counting pieces and training for `vocab_tools` |
//! | `progress` | reports progress of long work |
//! | `batch` | batches for `bpe_engine.Tokenizer` |
//! | `errors` | converts errors of the core to Python exceptions |

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
mod train_words;
mod truncate;
mod vocab_tools;

use pyo3::prelude::*;

/// The native module of `bpe_engine`. Runs without the GIL (tests/engine/test_free_threading.py).
#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::answers::mark_answers;
    #[pymodule_export]
    use super::audit::{AuditedIds, audit_segments};
    #[pymodule_export]
    use super::batch::{EncodedRows, RowEncoder, RowSource, arrange_rows};
    #[pymodule_export]
    use super::buffer::TokenBuffer;
    #[pymodule_export]
    use super::errors::{UnsupportedTokenizer, disallowed_special_message};
    #[pymodule_export]
    use super::gil::work_done;
    #[pymodule_export]
    use super::hf::{
        HfEncoding, hf_added_tokens, hf_component, hf_content_hash, hf_decode, hf_normalize,
        hf_pre_tokenize, hf_process,
    };
    #[pymodule_export]
    use super::labels::Labels;
    #[pymodule_export]
    use super::methods::{call_method, size_of_plain};
    #[pymodule_export]
    use super::pipeline::{PyEncoding, PyPipeline, PyTokenizer};
    #[pymodule_export]
    use super::prefix_cache::SharedPrefixCache;
    #[pymodule_export]
    use super::prompt::{
        ConversationState, NameCounter, NameFinder, encode_segments, stable_prefix,
    };
    #[pymodule_export]
    use super::ranks::parse_ranks;
    #[pymodule_export]
    use super::stream_pool::{PyStreamPool, StreamStop};
    #[pymodule_export]
    use super::taint::{cost_of_joining, join_traced};
    #[pymodule_export]
    use super::template::{collect_segments, copy_plain};
    #[pymodule_export]
    use super::token_table::PyTokenTable;
    #[pymodule_export]
    use super::token_trie::{PyHealed, PyTokenTrie};
    #[pymodule_export]
    use super::train::{CountReader, PieceCounts, merge_counts, train_bpe};
    #[pymodule_export]
    use super::train_words::WordCounts;
    #[pymodule_export]
    use super::vocab_tools::{
        audit_tokens, count_tokens, learn_merges, merge_bytes, parse_rank_lines, token_splits,
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
