//! Chooses the vector instructions: AVX-512 with VBMI2, AVX2, NEON, or portable code.

use crate::ablation::Mechanism;

/// Environment variable that lowers the tier.
const TIER_VARIABLE: &str = "BPE_ENGINE_TIER";

/// A set of vector instructions that this processor supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier(Instructions);

/// Instructions of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Instructions {
    Portable,
    /// Part of every aarch64 processor.
    Neon,
    /// Requires [`has_avx2`].
    Avx2,
    /// Requires [`has_avx512`].
    Avx512,
}

impl Tier {
    /// Returns the best tier of this processor, or the lower tier named by the environment variable
    /// `BPE_ENGINE_TIER`: `portable`, `neon`, `avx2` or `avx512`. Other values are ignored.
    pub fn from_environment() -> Self {
        Self::chosen(std::env::var(TIER_VARIABLE).ok().as_deref())
    }

    /// Returns the tier for a value of the environment variable.
    pub(crate) fn chosen(name: Option<&str>) -> Self {
        name.and_then(Self::named).unwrap_or_else(Self::best)
    }

    /// Returns the best tier of this processor.
    pub fn best() -> Self {
        Self(if Mechanism::Vectors.is_used() { best() } else { Instructions::Portable })
    }

    /// Returns the tier `name`, or the best supported tier below it; `None` for other names.
    pub fn named(name: &str) -> Option<Self> {
        let kind = match name {
            "portable" => Instructions::Portable,
            "neon" if HAS_NEON => Instructions::Neon,
            "avx2" => Instructions::Avx2,
            "avx512" => Instructions::Avx512,
            _ => return None,
        };
        Some(Self(kind.min(best())))
    }

    /// Returns every tier that this processor supports, in ascending order.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        let names = ["portable", "neon", "avx2", "avx512"];
        let mut tiers: Vec<Self> = names.into_iter().filter_map(Self::named).collect();
        tiers.dedup();
        tiers
    }

    /// Returns the name of the tier.
    pub fn name(self) -> &'static str {
        match self.0 {
            Instructions::Portable => "portable",
            Instructions::Neon => "neon",
            Instructions::Avx2 => "avx2",
            Instructions::Avx512 => "avx512",
        }
    }

    /// Returns the instructions of the tier, which the processor supports.
    #[inline(always)]
    pub(crate) fn kind(self) -> Instructions {
        self.0
    }
}

/// Big-endian systems order lanes differently.
const HAS_NEON: bool = cfg!(all(target_arch = "aarch64", target_endian = "little"));

fn best() -> Instructions {
    if HAS_NEON {
        Instructions::Neon
    } else if has_avx512() {
        Instructions::Avx512
    } else if has_avx2() {
        Instructions::Avx2
    } else {
        Instructions::Portable
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}
