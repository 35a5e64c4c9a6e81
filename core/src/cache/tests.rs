use super::table::{alternatives, hash, home};
use super::{Cache, CacheSize, LongKey, MediumKey, run_key};
use crate::hash::{FIXED_SEEDS, fold};
use crate::vocabulary::key;

/// Returns pseudorandom seeds that are the same in every run.
fn seeds(number: u64) -> [u64; 2] {
    FIXED_SEEDS.map(|seed| fold(seed ^ number, 0x9e37_79b9_7f4a_7c15))
}

fn empty() -> Cache {
    Cache::with_seeds(CacheSize::DEFAULT, seeds(0)).expect("memory")
}

/// The cache finds pieces of any length with up to 50 ids, and no piece with more ids.
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

/// Returns five numbers whose keys have the same home, each with different sets for relocation.
fn of_one_set<const W: usize>(sets: usize, hash: impl Fn(u32) -> u64) -> Vec<u32> {
    let mut by_set = std::collections::HashMap::<usize, Vec<u32>>::new();
    for i in 0.. {
        let set = home::<W>(hash(i), sets);
        let others = by_set.entry(set).or_default();
        let pair = |i| alternatives(hash(i), sets)[0] / 2;
        if pair(i) != set / 2 && others.iter().all(|&other| pair(other) != pair(i)) {
            others.push(i);
        }
        if others.len() == 5 {
            return others.clone();
        }
    }
    unreachable!("there are numbers enough for every set")
}

/// In caches of every size, evicted pieces are found repeatedly at their relocated positions, with
/// the right ids, and so are the pieces that evicted them. (A set has two entries.)
#[test]
fn evicted_pieces_come_back() {
    for size in [CacheSize::MIN, CacheSize::DEFAULT, CacheSize::new(1 << 25).expect("a size")] {
        for seed in 0..2 {
            let seeds = seeds(seed);
            let mut cache = Cache::with_seeds(size, seeds).expect("memory");
            let short = |i: u32| key(format!("{i:08}").as_bytes(), 0, 8);
            let medium = |i: u32| MediumKey::new(format!("{i:024}").as_bytes());
            let shorts = of_one_set::<2>(size.short() / 64, |i| hash(short(i), seeds));
            let mediums = of_one_set::<4>(size.longer() / 128, |i| hash(medium(i).words(), seeds));
            for (i, n) in (0..).zip(&shorts) {
                cache.insert(short(*n), &[*n, i, 7, 8][..3 + i as usize % 2]);
            }
            for (i, n) in (0..).zip(&mediums) {
                cache.insert(medium(*n), &[*n, i]);
            }
            for turn in 0..20 {
                let i = turn * 3 % 5;
                let mut found = vec![];
                assert!(cache.append(short(shorts[i]), &mut found), "short {i}, turn {turn}");
                assert_eq!(found, [shorts[i], i as u32, 7, 8][..3 + i % 2]);
                let mut found = vec![];
                assert!(cache.append(medium(mediums[i]), &mut found), "medium {i}, turn {turn}");
                assert_eq!(found, [mediums[i], i as u32]);
            }
            assert!(!cache.append(short(u32::MAX), &mut vec![]));
        }
    }
}

/// A relocated entry takes an empty slot or the slot of another relocated entry, never the slot of
/// an entry at home. (Of three entries in a set the first is relocated; its alternatives are full.)
#[test]
fn relocated_entries_evict_nothing_at_home() {
    let size = CacheSize::MIN;
    let seeds = seeds(3);
    let sets = size.short() / 64;
    let short = |i: u32| key(format!("{i:08}").as_bytes(), 0, 8);
    let home_of = |i: u32| home::<2>(hash(short(i), seeds), sets);
    let mut cache = Cache::with_seeds(size, seeds).expect("memory");
    let own = of_one_set::<2>(sets, |i| hash(short(i), seeds));
    let others = alternatives(hash(short(own[0]), seeds), sets);
    let filling = |set| (0..).filter(move |&i| home_of(i) == set).take(2);
    let at_home: Vec<u32> = others.into_iter().flat_map(filling).collect();
    for &i in at_home.iter().chain(&own[..3]) {
        cache.insert(short(i), &[i]);
    }
    for &i in at_home.iter().chain(&own[1..3]) {
        assert!(cache.append(short(i), &mut vec![]), "{i}");
    }
    assert!(!cache.append(short(own[0]), &mut vec![]));
}

/// A cache that is half full keeps at least 94 % of its pieces; without relocation, 90 %.
#[test]
fn a_cache_keeps_most_of_what_it_has_room_for() {
    const SEEDS: u64 = 20;
    let size = CacheSize::MIN;
    let pieces = size.short() / 64;
    let short = |i: usize| key(format!("{i:08}").as_bytes(), 0, 8);
    let mut kept = 0;
    for seed in 0..SEEDS {
        let mut cache = Cache::with_seeds(size, seeds(seed)).expect("memory");
        for i in 0..pieces {
            cache.insert(short(i), &[i as u32]);
        }
        for i in 0..pieces {
            let mut found = vec![];
            if cache.append(short(i), &mut found) {
                assert_eq!(found, [i as u32], "seed {seed}");
                kept += 1;
            }
        }
    }
    let percent = 100 * kept / (pieces * SEEDS as usize);
    assert!((94..=100).contains(&percent), "{percent} %");
}

#[test]
fn ids_that_need_more_bits_are_not_kept() {
    let mut cache = empty();
    let key = key(b"abc", 0, 3);
    for ids in [vec![1 << 24], vec![1 << 24, 1, 2, 3, 4]] {
        cache.insert(key, &ids);
        assert!(!cache.append(key, &mut vec![]));
    }
    // The count takes bits of the first id; the more ids there are, the fewer bits each can have.
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
