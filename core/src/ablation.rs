//! Mechanisms that can be left out one at a time, to measure what each is worth.
//!
//! `python -m benchmarks.ablation` builds this crate with the feature `ablation` and runs it once
//! as it is and once without each [`Mechanism`]; `docs/design.md` has the figures. Without the
//! feature every mechanism is in use, and the compiler sees that: nothing of this is in what is
//! shipped. To leave one out changes how long encoding takes, never the ids.

/// What can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// Without: nothing is remembered.
    Cache,
    /// Without: nothing is remembered of pieces of more than 15 bytes that are no runs.
    LongTables,
    /// Without: ids are kept in 32 bits each, never in 20.
    PackedIds,
    /// Without: an entry that is evicted is lost.
    Relocation,
    /// Without: misses are resolved one after the other.
    MissBatches,
    /// Without: a miss waits for others among few pieces too.
    FewMisses,
    /// Without: memory is first asked for when it is needed.
    Prefetch,
    /// Without: memory lies on pages of the usual size.
    HugePages,
    /// Without: one workspace, so that of two calls at once one has no cache.
    Pool,
    /// Without: each id becomes a new Python `int`.
    IntCache,
    /// Without: each long text gets new memory for its ids.
    BufferPool,
    /// Without: short pieces are merged one after the other.
    Lanes,
    /// Without: pieces in Chinese and the like are not cut apart before they are merged.
    Boundaries,
    /// Without: merging starts with single bytes.
    FirstParts,
    /// Without: short pieces are merged with a heap, as long ones are.
    Scan,
    /// Without: portable code in place of vector instructions.
    Vectors,
    /// Without: added tokens of a `tokenizer.json` are looked for with an automaton alone.
    Beginnings,
}

impl Mechanism {
    /// All of them, by name.
    pub const ALL: &[(&str, Mechanism)] = &[
        ("cache", Mechanism::Cache),
        ("long-tables", Mechanism::LongTables),
        ("packed-ids", Mechanism::PackedIds),
        ("relocation", Mechanism::Relocation),
        ("miss-batches", Mechanism::MissBatches),
        ("few-misses", Mechanism::FewMisses),
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
        ("beginnings", Mechanism::Beginnings),
    ];

    /// Whether it is in use.
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

/// Leaves the mechanism of this name out from now on; none if it is empty.
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
