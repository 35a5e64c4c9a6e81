//! Fuzzes SentencePiece files on the stable toolchain: valid models, damaged models, and normalizer
//! rules with arbitrary offsets. `make fuzz` runs many cases.

#[path = "support/cases.rs"]
mod cases;
#[path = "support/mod.rs"]
mod support;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use bpe_core::pipeline::{Encoded, Input, Pipeline, Sequence, Version};
use cases::fuzz;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestCaseResult;

/// Encodes a number as a protobuf varint.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn piece(text: &str, score: f32, kind: u64) -> Vec<u8> {
    let score = [varint(2 << 3 | 5), score.to_le_bytes().to_vec()].concat();
    bytes(1, &[bytes(1, text.as_bytes()), score, number(3, kind)].concat())
}

/// Characters of pieces, of rules and of texts.
const CHARACTERS: &str = "abcabcab  \u{2581}\u{2581}é日本ｶﾞ\u{301}\u{3000}\n\t\u{ad}\u{0}.,";

fn text(length: usize) -> impl Strategy<Value = String> + Clone {
    let character = prop_oneof![
        12 => select(CHARACTERS.chars().collect::<Vec<_>>()),
        1 => any::<char>(),
    ];
    let stretch = (character, prop_oneof![9 => Just(1), 1 => 1..80_usize]);
    vec(stretch, 0..=length).prop_map(|stretches| {
        stretches.into_iter().flat_map(|(c, count)| std::iter::repeat_n(c, count)).collect()
    })
}

/// Generates the charsmap field: absent, rules, damaged rules, or arbitrary units.
fn charsmap() -> impl Strategy<Value = Vec<u8>> {
    let rules = btree_map(text(2), text(2), 0..6).prop_map(|rules| charsmap_of(&rules));
    let units = (vec(any::<u32>(), 0..300), any::<Vec<u8>>());
    prop_oneof![
        2 => Just(Vec::new()),
        4 => rules.clone(),
        2 => (rules, damage()).prop_map(|(rules, damage)| damaged(rules, &damage)),
        1 => units.prop_map(|(units, rest)| {
            let units: Vec<u8> = units.into_iter().flat_map(u32::to_le_bytes).collect();
            [&(units.len() as u32).to_le_bytes()[..], &units, &rest].concat()
        }),
    ]
}

/// Returns the charsmap of rules: a double array whose nodes take the lowest free slots for their
/// children.
fn charsmap_of(rules: &BTreeMap<String, String>) -> Vec<u8> {
    let (mut list, mut starts) = (Vec::new(), BTreeMap::new());
    for (from, to) in rules.iter().filter(|(from, _)| !from.contains('\0')) {
        starts.insert(from.as_bytes(), list.len() as u32);
        list.extend([to.as_bytes(), b"\0"].concat());
    }
    let mut units = BTreeMap::from([(0_u32, 0_u32)]);
    let mut nodes = vec![(0_u32, Vec::new())];
    let mut bases = BTreeSet::new();
    while let Some((place, start)) = nodes.pop() {
        let longer = starts.keys().filter_map(|key| key.strip_prefix(&start[..]));
        let labels: BTreeSet<u8> = longer.map(|key| *key.first().unwrap_or(&0)).collect();
        let is_free = |base: &u32| {
            !bases.contains(base)
                && labels.iter().all(|&label| !units.contains_key(&(base ^ u32::from(label))))
        };
        let base = (1..).find(is_free).unwrap();
        bases.insert(base);
        let leaf = starts.get(&start[..]).copied();
        *units.get_mut(&place).unwrap() |= (place ^ base) << 10 | u32::from(leaf.is_some()) << 8;
        for label in labels {
            units.insert(base ^ u32::from(label), u32::from(label));
            if label != 0 {
                nodes.push((base ^ u32::from(label), [&start[..], &[label]].concat()));
            }
        }
        if let Some(leaf) = leaf {
            units.insert(base, leaf | 1 << 31);
        }
    }
    let last = units.last_key_value().map_or(0, |(place, _)| place | 255);
    let trie: Vec<u8> =
        (0..=last).flat_map(|at| units.get(&at).copied().unwrap_or(0).to_le_bytes()).collect();
    [&(trie.len() as u32).to_le_bytes()[..], &trie, &list].concat()
}

/// A piece: its text, score and type.
type Piece = (String, f32, u64);

/// Generates pieces that form a model, or a few arbitrary pieces, which may repeat.
fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let score = prop_oneof![6 => -12.0..0.0_f32, 3 => select(vec![-1.0, -2.0])];
    let kind = prop_oneof![8 => Just(1_u64), 3 => select(vec![3, 4, 5])];
    let sound = btree_map(text(3), (score, kind), 0..40).prop_map(|mut pieces| {
        pieces.remove("");
        pieces.into_iter().map(|(text, (score, kind))| (text, score, kind)).collect()
    });
    prop_oneof![4 => sound, 1 => vec((text(3), any::<f32>(), 0..9_u64), 0..6)]
}

/// Generates a `.model` with fields in order.
fn model() -> impl Strategy<Value = Vec<u8>> {
    let trainer = (0..6_u64, any::<[bool; 2]>());
    let flags = any::<[bool; 3]>();
    (pieces(), any::<bool>(), trainer, charsmap(), flags).prop_map(
        |(pieces, has_bytes, (algorithm, [suffix, fallback]), charsmap, flags)| {
            let mut file = piece("<unk>", 0.0, 2);
            if has_bytes {
                let byte = |byte: u8| piece(&format!("<0x{byte:02X}>"), 0.0, 6);
                file.extend((0..=255).flat_map(byte));
            }
            file.extend(pieces.iter().flat_map(|(text, score, kind)| piece(text, *score, *kind)));
            let trainer = [
                number(3, algorithm),
                number(24, suffix.into()),
                number(35, (fallback && has_bytes).into()),
            ];
            file.extend(bytes(2, &trainer.concat()));
            let flags = (3..).zip(flags).flat_map(|(field, flag)| number(field, flag.into()));
            file.extend(bytes(3, &[bytes(2, &charsmap), flags.collect()].concat()));
            file
        },
    )
}

/// A change to a file at an offset.
type Damage = (Index, u8, u8);

fn damage() -> impl Strategy<Value = Vec<Damage>> + Clone {
    vec((any::<Index>(), 0..4_u8, any::<u8>()), 1..4)
}

fn damaged(mut file: Vec<u8>, damage: &[Damage]) -> Vec<u8> {
    for (place, kind, byte) in damage {
        if file.is_empty() {
            break;
        }
        let place = place.index(file.len());
        match kind {
            0 => file.truncate(place),
            1 => file.insert(place, *byte),
            2 => drop(file.remove(place)),
            _ => file[place] = *byte,
        }
    }
    file
}

fn ids(tokenizer: &Pipeline, text: &str) -> Option<Vec<u32>> {
    let input = Input { first: Sequence::Text(text), second: None };
    match tokenizer.encode(input, false, Vec::new()).ok()? {
        Encoded::Ids { ids, .. } => Some(ids),
        Encoded::Partial { encoding, .. } | Encoded::Complete(encoding) => Some(encoding.ids),
    }
}

/// Checks that a file is refused with a reason, or yields a tokenizer that encodes a text to the
/// same ids each time, with and without details, and decodes them.
fn check(file: &[u8], version: Version, texts: &[String]) -> Result<bool, TestCaseError> {
    let tokenizer = match Pipeline::from_sentencepiece(file, version) {
        Ok(tokenizer) => tokenizer,
        Err(error) => {
            prop_assert!(error.to_string().len() > 10);
            return Ok(false);
        }
    };
    for text in texts {
        let first = ids(&tokenizer, text);
        prop_assert_eq!(&ids(&tokenizer, text), &first, "{:?}", text);
        let input = Input { first: Sequence::Text(text), second: None };
        let fully = tokenizer.encode_fully(input, false, true, false);
        prop_assert_eq!(&fully.ok().map(|encoding| encoding.ids), &first, "{:?}", text);
        let Some(first) = first else { continue };
        for &id in &first {
            prop_assert!(tokenizer.id_to_token(id).is_some(), "{} of {:?}", id, text);
        }
        prop_assert!(tokenizer.decode(&first, false).is_ok(), "{:?}", text);
    }
    Ok(true)
}

fn version() -> impl Strategy<Value = Version> {
    select(vec![Version::V021, Version::V023])
}

#[test]
fn models_of_sentencepiece_are_read_or_refused() {
    let counts = [const { Cell::new(0_usize) }; 2];
    fuzz((model(), version(), vec(text(12), 1..4)), |(file, version, texts)| {
        let count = &counts[usize::from(check(&file, version, &texts)?)];
        count.set(count.get() + 1);
        Ok(())
    });
    let [refused, read] = counts.map(Cell::into_inner);
    assert!(read > refused / 8, "{read} files of {}", read + refused);
}

#[test]
fn damaged_models_of_sentencepiece_are_read_or_refused() {
    fuzz((model(), damage(), version(), text(12)), |(file, damage, version, text)| {
        check(&damaged(file, &damage), version, &[text]).map(|_| ())
    });
}

#[test]
fn other_files_are_refused() {
    fuzz((vec(any::<u8>(), 0..200), text(4)), |(file, text)| -> TestCaseResult {
        check(&file, Version::V023, &[text]).map(|_| ())
    });
}
