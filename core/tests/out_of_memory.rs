//! Tests with a failing allocator that calls return an error if texts, ids or files do not fit in
//! memory.
//!
//! A call runs in a child process, in which the n-th large allocation and all later ones fail, for
//! n = 1, 2, 3 and so on until the call ends without a failure. Each time the call must return
//! [`Error::OutOfMemory`] or succeed; an aborted process names the call and the n.

#[path = "support/failing.rs"]
mod failing;
#[path = "support/patterns.rs"]
mod patterns;

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use bpe_core::conversation::Conversation;
use bpe_core::segments::Prompt;
use bpe_core::{
    Direct, Error, Normalization, Pipeline, Request, Result, SpecialTokens, Splitter, Vocabulary,
    rank_file,
};
use failing::LEFT;
use patterns::PATTERNS;

struct Inputs {
    pipeline: Pipeline,
    text: String,
    bytes: Vec<u8>,
    ids: Vec<u32>,
    ranks: Vec<u8>,
    all: Request,
}

fn inputs(pattern: &str, normalization: Normalization) -> Inputs {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let words = (0..20_000u32).map(|number| format!("{number:x}").into_bytes());
    let words = words.filter(|word| word.len() > 1);
    let tokens: Vec<(Vec<u8>, u32)> = bytes.chain(words).zip(0..).collect();
    let line = |(token, id): &(Vec<u8>, u32)| format!("{} {id}\n", STANDARD.encode(token));
    let ranks: String = tokens.iter().map(line).collect();
    let vocabulary = Vocabulary::build(tokens).unwrap();
    let special = SpecialTokens::new([("<|a|>".to_owned(), 100_000)]).unwrap();
    let all = Request::allowing(special.select(["<|a|>"]));
    let splitter = Splitter::new(pattern).unwrap();
    let pipeline = Pipeline::of_ranks(vocabulary, splitter, special, normalization).unwrap();
    let mut text = "-".repeat(70_000);
    for number in 0..8_000 {
        text += &format!("<|a|> word{number} {number:x} cafe\u{301} \u{4e2d}\u{6587}\u{ac01} \n");
    }
    let mut ids = Vec::new();
    pipeline.encode_text(&text, &all, &mut ids).unwrap();
    let bytes = [text.as_bytes(), &[0xff; 100_000]].concat();
    Inputs { pipeline, text, bytes, ids, ranks: ranks.into_bytes(), all }
}

impl Inputs {
    fn direct(&self) -> &Direct {
        self.pipeline.direct().unwrap()
    }
}

type Call = fn(&mut Inputs) -> Result<()>;

/// Calls whose memory grows with a text or a file, by name.
const CALLS: &[(&str, Call)] = &[
    ("encode", |with| with.pipeline.encode_text(&with.text, &with.all, &mut Vec::new())),
    ("encode ordinary", |with| {
        with.pipeline.encode_text(&with.text, &Request::ORDINARY, &mut Vec::new())
    }),
    ("count", |with| with.pipeline.count(&with.text, usize::MAX, &with.all).map(drop)),
    ("decode", |with| with.direct().decode_bytes(&with.ids).map(drop)),
    ("bytes", |with| with.direct().encode_bytes(with.text.as_bytes()).map(drop)),
    ("bytes invalid", |with| with.direct().encode_bytes(&with.bytes).map(drop)),
    ("spans", |with| with.pipeline.encode_with_spans(&with.text, &with.all).map(drop)),
    ("conversation", |with| {
        let mut conversation = Conversation::default();
        conversation.update_text(&with.pipeline, &with.text, &with.all)?;
        conversation.append_text(&with.pipeline, None, "\u{301}", &with.all).map(drop)
    }),
    ("segments", |with| {
        let mut prompt = Prompt::default();
        prompt.push_text(&with.pipeline, &with.text, &with.all.allowed)?;
        Conversation::default().update_prompt(&with.pipeline, prompt).map(drop)
    }),
    ("rank file", |with| rank_file::parse(&with.ranks).map(drop)),
];

const KINDS: [(&str, &str, Normalization); 3] = [
    ("family", PATTERNS[1], Normalization::None),
    ("nfc", PATTERNS[1], Normalization::Nfc),
    ("regex", r"\w+|\s+|[^\w\s]+", Normalization::None),
];

const PLAN: &str = "OUT_OF_MEMORY";

/// In the child process: repeats a call until no allocation fails. Prints each attempt first.
fn try_one(plan: &str) {
    let plan: Vec<_> = plan.split(',').collect();
    let (_, pattern, normalization) = KINDS.into_iter().find(|kind| kind.0 == plan[0]).unwrap();
    let (_, call) = CALLS.iter().find(|call| call.0 == plan[1]).unwrap();
    let mut inputs = inputs(pattern, normalization);
    for left in plan[2].parse().unwrap().. {
        eprintln!("{left}");
        LEFT.store(left, SeqCst);
        let result = call(&mut inputs);
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
    if let Ok(plan) = std::env::var(PLAN) {
        return try_one(&plan);
    }
    let plans: Vec<_> =
        KINDS.iter().flat_map(|kind| CALLS.iter().map(|call| (kind.0, call.0))).collect();
    let next = AtomicUsize::new(0);
    let aborted = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((kind, call)) = plans.get(next.fetch_add(1, SeqCst)) {
                    let found = aborts(kind, call);
                    aborted.lock().unwrap().extend(found);
                }
            });
        }
    });
    let aborted = aborted.into_inner().unwrap();
    assert!(aborted.is_empty(), "{}", aborted.join("\n"));
}

/// Returns the large allocations of a call whose failure aborts the process.
fn aborts(kind: &str, call: &str) -> Vec<String> {
    let mut aborted = Vec::new();
    let mut left = 0;
    loop {
        let done = Command::new(std::env::current_exe().unwrap())
            .arg("--nocapture")
            .env(PLAN, format!("{kind},{call},{left}"))
            .output()
            .unwrap();
        if done.status.success() {
            return aborted;
        }
        let said = String::from_utf8_lossy(&done.stderr);
        // A panic has an exit code and would recur for every n.
        assert_eq!(done.status.code(), None, "{kind}, {call}: {said}");
        let tried = said.lines().filter_map(|line| line.parse::<usize>().ok()).next_back();
        let tried = tried.unwrap_or(left);
        aborted.push(format!("{kind}, {call}, the large allocation after {tried} others"));
        left = tried + 1;
    }
}
