use super::table::{hash, home};
use super::{Cache, CacheSize, LongKey, MediumKey, run_key};
use crate::hash::{FIXED_SEEDS, fold};
use crate::vocabulary::key;

/// Returns seeds that look random and are the same in every run.
fn seeds(number: u64) -> [u64; 2] {
    FIXED_SEEDS.map(|seed| fold(seed ^ number, 0x9e37_79b9_7f4a_7c15))
}

fn empty() -> Cache {
    Cache::with_seeds(CacheSize::DEFAULT, seeds(0)).expect("memory")
}

/// Maximum number of ids, in short pieces and in long ones, of equal and of different bytes.
#[test]
fn ids_come_back_or_are_unknown() {
    let mut cache = empty();
    let piece: Vec<u8> = (b'a'..=b'z').cycle().take(127).collect();
    let ids = |length: usize, count: usize| -> Vec<u32> {
        (0..count as u32).map(|i| 1000 * length as u32 + i).collect()
    };
    for count in (1..15).chain(30..35).chain(48..53) {
        for length in 1..=15 {
            cache.insert(key(&piece, 0, length), &ids(length, count));
        }
        for length in 16..=31 {
            cache.insert(MediumKey::new(&piece[..length]), &ids(length, count));
        }
        for length in 32..=127 {
            cache.insert(LongKey::new(&piece[..length]), &ids(length, count));
        }
        for length in 1..=127 {
            let mut found = vec![7];
            let is_known = match length {
                1..=15 => cache.append(key(&piece, 0, length), &mut found),
                16..=31 => cache.append(MediumKey::new(&piece[..length]), &mut found),
                _ => cache.append(LongKey::new(&piece[..length]), &mut found),
            };
            assert_eq!(is_known, count <= 50, "{length} bytes, {count} ids");
            let expected = if is_known { ids(length, count) } else { vec![] };
            assert_eq!(found[1..], expected);
        }
        cache = empty();
    }
}

/// A set keeps the two newest of three pieces, in caches of every size.
#[test]
fn a_set_keeps_the_newest_pieces() {
    for size in [CacheSize::MIN, CacheSize::DEFAULT, CacheSize::new(1 << 25).expect("a size")] {
        let seeds = seeds(1);
        let mut cache = Cache::with_seeds(size, seeds).expect("memory");
        let medium = |i: u32| MediumKey::new(format!("{i:024}").as_bytes());
        let set = |i: u32| home::<4>(hash(medium(i).words(), seeds), size.longer() / 128);
        let same: Vec<u32> = (0..).filter(|&i| set(i) == set(0)).take(3).collect();
        for &i in &same {
            cache.insert(medium(i), &[i, 7]);
        }
        for (place, &i) in same.iter().enumerate() {
            let mut found = vec![];
            assert_eq!(cache.append(medium(i), &mut found), place > 0);
            assert!(place == 0 || found == [i, 7]);
        }
    }
}

#[test]
fn ids_that_need_more_bits_are_not_kept() {
    let mut cache = empty();
    let key = key(b"abc", 0, 3);
    for ids in [vec![1 << 24], vec![1 << 24, 1, 2, 3, 4]] {
        cache.insert(key, &ids);
        assert!(!cache.append(key, &mut vec![]));
    }
    // The count is in the first id, and the most ids have less room each.
    for count in 1..60 {
        for (byte, large, most) in [
            (b'=', (1 << 20) - 2, 50),
            (b'-', (1 << 20) - 1, 32),
            (b'+', u32::MAX - 1, 32),
            (b'*', u32::MAX, 32),
        ] {
            let mut ids = vec![large; count];
            ids[0] = 1;
            let key = run_key(&vec![byte; 16 * count]).expect("a run");
            cache.insert(key, &ids);
            let mut found = vec![];
            let is_known = cache.append(key, &mut found);
            assert_eq!(is_known, count <= most, "{count} times {large}");
            assert!(!is_known || found == ids, "{count} times {large}");
        }
    }
}

/// Ids that are all zero differ from an empty entry.
#[test]
fn zeros_are_ids() {
    let mut cache = empty();
    for count in 1..=50 {
        let key = run_key(&vec![b'!'; 16 + count]).expect("a run");
        cache.insert(key, &vec![0; count]);
        let mut found = vec![];
        assert!(cache.append(key, &mut found));
        assert_eq!(found, vec![0; count]);
    }
}
