//! Tests encoding and decoding with an allocator that fails.
//!
//! Each component runs in its own process, where the n-th large allocation and all later ones fail,
//! for n = 1, 2, 3 and so on, later with gaps, until no allocation fails. A call must return
//! [`Error::OutOfMemory`] or succeed; if the process aborts, the test names the component and n.

#[path = "support/failing.rs"]
mod failing;

use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;

use bpe_core::hf::{Error, Input, Result, Sequence, Tokenizer, text_of};
use failing::LEFT;
use serde_json::{Value, json};

/// Returns the components to test: field, name for messages, JSON.
fn components() -> Vec<(&'static str, &'static str, Value)> {
    let normalizers = [
        ("prepend", json!({"type": "Prepend", "prepend": "x y"})),
        ("replace", json!({"type": "Replace", "pattern": {"Regex": "[aeiou]"}, "content": "<é>"})),
        ("nfd", json!({"type": "NFD"})),
        ("lowercase", json!({"type": "Lowercase"})),
        ("strip", json!({"type": "Strip", "strip_left": true, "strip_right": true})),
    ];
    let byte_level = |add_prefix_space: bool, use_regex: bool| {
        json!({"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true,
               "use_regex": use_regex})
    };
    let after =
        |part: Value| json!({"type": "Sequence", "pretokenizers": [part, byte_level(false, true)]});
    let split = json!({"type": "Split", "pattern": {"Regex": "[0-9]+"},
                       "behavior": "MergedWithPrevious", "invert": false});
    let pre_tokenizers = [
        ("pattern", byte_level(false, true)),
        ("space", byte_level(true, true)),
        ("whole", byte_level(true, false)),
        ("punctuation", after(json!({"type": "Punctuation", "behavior": "Isolated"}))),
        ("whitespace", after(json!({"type": "Whitespace"}))),
        ("digits", after(json!({"type": "Digits", "individual_digits": true}))),
        ("split", after(split)),
    ];
    let decoders = json!([
        {"type": "Replace", "pattern": {"String": "a"}, "content": "<>"},
        {"type": "Strip", "content": "h", "start": 1, "stop": 1},
        {"type": "Fuse"},
        {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    ]);
    let decoders = [
        ("bytes", byte_level(false, true)),
        ("decoders", json!({"type": "Sequence", "decoders": decoders})),
        ("none", Value::Null),
    ];
    let of = |field, parts: &[(&'static str, Value)]| {
        let named = |(name, part): &(&'static str, Value)| (field, *name, part.clone());
        parts.iter().map(named).collect::<Vec<_>>()
    };
    let all = [
        of("normalizer", &normalizers),
        of("pre_tokenizer", &pre_tokenizers),
        of("decoder", &decoders),
    ];
    all.concat()
}

/// Builds a tokenizer with the component, and without a token for the byte 0x03.
fn tokenizer(field: &str, component: &Value) -> Tokenizer {
    let mut tokens: Vec<String> = (0..=255).map(|byte| text_of(&[byte])).collect();
    tokens.extend(["th", "the", "Ġthe", "--"].map(str::to_owned));
    tokens.retain(|token| *token != text_of(&[3]));
    let vocab: Value =
        tokens.iter().cloned().zip(0..).collect::<Vec<(_, u32)>>().into_iter().collect();
    let mut file = json!({
        "version": "1.0",
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
        "model": {"type": "BPE", "vocab": vocab,
                  "merges": ["t h", "th e", "Ġ the", "- -"]},
        "added_tokens": [{"id": 259, "content": "<x>", "single_word": false, "lstrip": false,
                          "rstrip": false, "normalized": false, "special": true}],
    });
    file[field] = component.clone();
    Tokenizer::from_json(&file.to_string()).unwrap()
}

fn call(tokenizer: &Tokenizer, text: &str, lacking: &str, ids: &[u32]) -> Result<()> {
    for text in [text, lacking] {
        let input = Input { first: Sequence::Text(text), second: None };
        tokenizer.encode(input, true, Vec::new())?;
        tokenizer.encode_fully(input, true, true, true)?;
    }
    tokenizer.decode(ids, false)?;
    Ok(())
}

const PLAN: &str = "OUT_OF_MEMORY";

/// Repeats a call until no allocation fails. Prints the number of each try.
fn try_one(name: &str) {
    let components = components();
    let (field, _, component) = components.iter().find(|each| each.1 == name).unwrap();
    let tokenizer = tokenizer(field, component);
    let text = "-".repeat(40_000) + &" The cafe\u{301}, 12 of<x> them!\n".repeat(800);
    let lacking = format!("{text}\u{3}{text}");
    let ids: Vec<u32> = (0..260).cycle().take(60_000).collect();
    // Every number at first, then with growing gaps.
    let numbers = std::iter::successors(Some(0_usize), |left| Some(left + 1 + left / 8));
    for left in numbers {
        eprintln!("{left}");
        LEFT.store(left, SeqCst);
        let result = call(&tokenizer, &text, &lacking, &ids);
        let is_enough = LEFT.swap(usize::MAX, SeqCst) > 0;
        match result {
            Ok(()) if is_enough => return,
            Ok(()) | Err(Error::OutOfMemory { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn failed_allocations_are_errors() {
    if let Ok(name) = std::env::var(PLAN) {
        return try_one(&name);
    }
    let mut aborted = Vec::new();
    for (_, name, _) in components() {
        let program = std::env::current_exe().unwrap();
        let done = Command::new(program).arg("--nocapture").env(PLAN, name).output().unwrap();
        if !done.status.success() {
            let printed = String::from_utf8_lossy(&done.stderr);
            let tried = printed.lines().filter_map(|line| line.parse::<usize>().ok()).next_back();
            aborted.push(format!("{name}, the large allocation after {tried:?} others: {printed}"));
        }
    }
    assert!(aborted.is_empty(), "{}", aborted.join("\n"));
}
