//! Mechanisms that can be disabled one at a time to measure their gain.
//!
//! `python -m benchmarks.ablation` builds this crate with the feature `ablation` and runs it with
//! all mechanisms and once without each [`Mechanism`]; `docs/design.md` has the figures. Without
//! the feature every mechanism is enabled at compile time, so releases contain no checks. Disabling
//! a mechanism changes how long encoding takes, never the ids.

/// A mechanism that can be disabled. Each variant documents the behavior without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// If disabled, no ids are cached.
    Cache,
    /// If disabled, only pieces of up to 15 bytes, and runs, are cached.
    LongTables,
    /// If disabled, cached ids take 32 bits each, never 20.
    PackedIds,
    /// If disabled, misses are resolved one by one.
    MissBatches,
    /// If disabled, memory is not prefetched.
    Prefetch,
    /// If disabled, memory uses pages of the default size.
    HugePages,
    /// If disabled, there is one workspace, so only one of two concurrent calls has a cache.
    Pool,
    /// If disabled, each id becomes a new Python `int`.
    IntCache,
    /// If disabled, the ids of each long text get newly allocated memory.
    BufferPool,
    /// If disabled, short pieces are merged one by one.
    Lanes,
    /// If disabled, Chinese and similar pieces are not split at boundaries before merging.
    Boundaries,
    /// If disabled, merging starts with single bytes.
    FirstParts,
    /// If disabled, short pieces are merged with a heap, like long pieces.
    Scan,
    /// If disabled, portable code replaces vector instructions.
    Vectors,
    /// If disabled, encoding_rs converts non-ASCII text from code points.
    CodePoints,
    /// If disabled, only an automaton searches for added tokens of a `tokenizer.json`.
    Beginnings,
    /// If disabled, pieces over characters are cut only at characters that are not tokens.
    Cuts,
    /// If disabled, the normalizer and the model see whole texts, cached words included.
    Chunks,
    /// If disabled, text is cut into cached words only next to ASCII characters.
    Settled,
    /// If disabled, every word of a SentencePiece Unigram model is searched, and none is looked up.
    Margins,
    /// If disabled, token splits of a `tokenizer.json` are computed, not read from its merges.
    ListedSplits,
    /// If disabled, words between spaces are cut character by character.
    Windows,
    /// If disabled, each text of a batch creates an object with all fields.
    Rows,
    /// If disabled, chat templates call the methods of strings and dicts through Python.
    NativeMethods,
}

impl Mechanism {
    /// All mechanisms, by name.
    pub const ALL: &[(&str, Mechanism)] = &[
        ("cache", Mechanism::Cache),
        ("long-tables", Mechanism::LongTables),
        ("packed-ids", Mechanism::PackedIds),
        ("miss-batches", Mechanism::MissBatches),
        ("prefetch", Mechanism::Prefetch),
        ("huge-pages", Mechanism::HugePages),
        ("pool", Mechanism::Pool),
        ("int-cache", Mechanism::IntCache),
        ("buffer-pool", Mechanism::BufferPool),
        ("lanes", Mechanism::Lanes),
        ("boundaries", Mechanism::Boundaries),
        ("first-parts", Mechanism::FirstParts),
        ("scan", Mechanism::Scan),
        ("vectors", Mechanism::Vectors),
        ("code-points", Mechanism::CodePoints),
        ("beginnings", Mechanism::Beginnings),
        ("cuts", Mechanism::Cuts),
        ("chunks", Mechanism::Chunks),
        ("settled", Mechanism::Settled),
        ("margins", Mechanism::Margins),
        ("listed-splits", Mechanism::ListedSplits),
        ("windows", Mechanism::Windows),
        ("rows", Mechanism::Rows),
        ("native-methods", Mechanism::NativeMethods),
    ];

    /// Returns true if the mechanism is enabled.
    #[inline(always)]
    pub fn is_used(self) -> bool {
        #[cfg(feature = "ablation")]
        return LEFT_OUT.load(std::sync::atomic::Ordering::Relaxed) != self as u8;
        #[cfg(not(feature = "ablation"))]
        true
    }
}

#[cfg(feature = "ablation")]
static LEFT_OUT: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(u8::MAX);

/// Disables the named mechanism from now on; an empty name disables nothing.
#[cfg(feature = "ablation")]
pub fn leave_out(name: &str) -> Result<(), String> {
    let left_out = match Mechanism::ALL.iter().find(|(known, _)| *known == name) {
        Some(&(_, mechanism)) => mechanism as u8,
        None if name.is_empty() => u8::MAX,
        None => return Err(format!("no mechanism {name:?}")),
    };
    LEFT_OUT.store(left_out, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}
