//! Divides work among threads, and takes the results in order.
//!
//! The threads live as long as the call, so that none survives into a fork or waits for another
//! call.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::memory::{append, has_room};
use crate::polling;
use crate::request::Request;
use crate::special_tokens::Selection;

/// The bytes of text that are worth a thread of their own; starting one takes some 20 microseconds.
const WORTH_A_THREAD: usize = 64 * 1024;

/// The average number of shares per thread: enough that no thread is idle for long at the end.
const SHARES_PER_THREAD: usize = 6;

/// The bytes of memory that a thread may need to start: its stack, and some to allocate from.
const MEMORY: usize = 4 << 20;

/// How long the calling thread waits for another one before it calls `aside` again.
const PATIENCE: Duration = Duration::from_millis(50);

/// Returns the number of threads that this machine runs at once.
pub fn cores() -> usize {
    /// 0 until first asked for.
    static CORES: AtomicUsize = AtomicUsize::new(0);
    match CORES.load(Ordering::Relaxed) {
        0 => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            CORES.store(cores, Ordering::Relaxed);
            cores
        }
        cores => cores,
    }
}

/// Does `shares` shares of work on this thread and up to `threads - 1` others.
///
/// `work` fills the result of the share it is given; results are reused, so it must clear the old
/// contents. `take` gets the results on this thread, in the order of the shares, while others are
/// still being worked on; its first error ends the call. This thread works and waits inside
/// `aside`, which must call the function it is given. While this thread waits, `aside` is called at
/// least every `PATIENCE`; its error ends the call, too. Work on the other threads then fails at
/// its next check ([`polling::poll`]).
///
/// ```
/// use bpe_core::threads::in_order;
///
/// let mut squares = Vec::new();
/// let work = |share: usize, square: &mut usize| *square = share * share;
/// let take = |square: &usize| Ok::<_, ()>(squares.push(*square));
/// in_order(5, 2, work, |job| Ok(job()), take).unwrap();
/// assert_eq!(squares, [0, 1, 4, 9, 16]);
/// ```
pub fn in_order<R: Default + Send, E>(
    shares: usize,
    threads: usize,
    work: impl Fn(usize, &mut R) + Sync,
    aside: impl Fn(&mut (dyn FnMut() + Send)) -> std::result::Result<(), E>,
    mut take: impl FnMut(&R) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let threads = threads.min(shares);
    // A thread that starts without memory would end the process.
    let has_memory = || has_room(threads.saturating_mul(MEMORY));
    let Some(queue) = (threads > 1 && has_memory()).then(|| Queue::new(shares, threads)) else {
        let mut result = R::default();
        for share in 0..shares {
            aside(&mut || work(share, &mut result))?;
            take(&result)?;
        }
        return Ok(());
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread cannot be started, this thread does its share.
            let helper = || {
                polling::with_check(&|| !queue.is_stopped(), || while queue.work_on_one(&work) {});
            };
            let _ = std::thread::Builder::new().spawn_scoped(scope, helper);
        }
        // However this thread returns, the others stop after their current shares.
        let _stop = StopOnDrop(&queue);
        for share in 0..shares {
            let mut result = None;
            while result.is_none() {
                result = queue.done(share);
                if result.is_none() {
                    aside(&mut || {
                        if !queue.work_on_one(&work) {
                            queue.wait_for(share);
                        }
                    })?;
                }
            }
            match result {
                Some(Ok(result)) => {
                    take(&result)?;
                    queue.use_again(result);
                }
                Some(Err(panic)) => resume_unwind(panic),
                None => unreachable!("the loop above ends with a result"),
            }
        }
        Ok(())
    })
}

/// The outcome of a share: a result, or the panic of the work.
type Outcome<R> = std::result::Result<R, Box<dyn Any + Send>>;

/// Shares to do, and results that are not taken yet.
struct Queue<R> {
    shares: usize,
    state: Mutex<State<R>>,
    changed: Condvar,
}

struct State<R> {
    /// The next share to work on.
    next: usize,
    is_stopped: bool,
    /// Indexed by share.
    done: Vec<Option<Outcome<R>>>,
    /// Results that were taken, for reuse; never more than there is capacity for.
    spare: Vec<R>,
}

impl<R: Default + Send> Queue<R> {
    /// Allocates all its memory now: an error could not be reported later, when a result is stored.
    fn new(shares: usize, threads: usize) -> Queue<R> {
        let done = (0..shares).map(|_| None).collect::<Vec<_>>();
        let spare = Vec::with_capacity(2 * threads);
        let state = State { next: 0, is_stopped: false, done, spare };
        Self { shares, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// No code that runs with the lock held can panic half-way.
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the next share; returns false if none is left.
    fn work_on_one(&self, work: &(impl Fn(usize, &mut R) + Sync)) -> bool {
        let mut state = self.lock();
        let share = state.next;
        if share >= self.shares {
            return false;
        }
        state.next += 1;
        let mut result = state.spare.pop().unwrap_or_default();
        drop(state);
        let outcome = catch_unwind(AssertUnwindSafe(|| work(share, &mut result)));
        self.lock().done[share] = Some(outcome.map(|()| result));
        self.changed.notify_one();
        true
    }

    fn done(&self, share: usize) -> Option<Outcome<R>> {
        self.lock().done[share].take()
    }

    fn use_again(&self, result: R) {
        let mut state = self.lock();
        if state.spare.len() < state.spare.capacity() {
            state.spare.push(result);
        }
    }

    /// Waits until the share, which another thread is working on, is done, or for a while.
    fn wait_for(&self, share: usize) {
        let waiting = |state: &mut State<R>| state.done[share].is_none();
        drop(self.changed.wait_timeout_while(self.lock(), PATIENCE, waiting));
        polling::ask_next();
    }

    /// Returns true once no more results are wanted.
    fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }
}

struct StopOnDrop<'a, R: Default + Send>(&'a Queue<R>);

impl<R: Default + Send> Drop for StopOnDrop<'_, R> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.next = self.0.shares;
        state.is_stopped = true;
    }
}

/// See [`Engine::encode_on_threads`].
pub(crate) fn encode<E: Engine + ?Sized>(
    engine: &E,
    text: &str,
    request: &Request,
    threads: usize,
    ids: &mut Vec<u32>,
) -> Result<()> {
    let threads = threads.min(cores()).min(text.len() / WORTH_A_THREAD);
    if threads <= 1 {
        return engine.encode_text(text, request, ids);
    }
    engine.check(text, request)?;
    let text = &*engine.normalization().apply(text)?;
    let share = text.len() / (threads * SHARES_PER_THREAD);
    encode_in_shares(engine, text, &request.allowed, threads, share, ids)
}

fn encode_in_shares<E: Engine + ?Sized>(
    engine: &E,
    text: &str,
    allowed: &Selection,
    threads: usize,
    share: usize,
    ids: &mut Vec<u32>,
) -> Result<()> {
    let (stretches, shares) = shares(engine, text, allowed, share)?;
    let work = |share: usize, part: &mut Part| {
        part.ids.clear();
        part.error = stretches[shares[share].clone()].iter().find_map(|stretch| {
            let Range { start, end } = stretch.text;
            let mut encode = || {
                if start < end {
                    let is_first = start == 0;
                    engine.encode_run(&text[start..end], is_first, &mut part.ids)?;
                }
                stretch.special.map_or(Ok(()), |id| {
                    part.ids.push(id);
                    Ok(())
                })
            };
            encode().err()
        });
    };
    in_order(
        shares.len(),
        threads,
        work,
        |job| {
            job();
            polling::poll(1)
        },
        |part: &Part| {
            append(ids, &part.ids)?;
            part.error.clone().map_or(Ok(()), Err)
        },
    )
}

/// Cuts a normalized text into stretches that can each be encoded on their own. Returns them, and
/// those of each share, which has at least `share` bytes.
fn shares<E: Engine + ?Sized>(
    engine: &E,
    text: &str,
    allowed: &Selection,
    share: usize,
) -> Result<(Vec<Stretch>, Vec<Range<usize>>)> {
    let (_, found) = engine.find_in_text(text, allowed, 0, &[])?;
    let (mut stretches, mut shares) = (Vec::new(), Vec::new());
    // The first stretch and the first byte of the current share.
    let (mut first, mut begin) = (0, 0);
    let mut position = 0;
    for index in 0..=found.len() {
        let special = found.get(index);
        let end = special.map_or(text.len(), |special| special.start);
        while begin + share < end {
            let near = (begin + share).max(position) - position;
            let Some(cut) = engine.safe_cut(&text[position..end], near) else { break };
            stretches.push(Stretch { text: position..position + cut, special: None });
            shares.push(first..stretches.len());
            (first, begin, position) = (stretches.len(), position + cut, position + cut);
        }
        let id = special.and_then(|special| special.ids.as_slice().first().copied());
        stretches.push(Stretch { text: position..end, special: id });
        let Some(special) = special else { break };
        position = special.end;
        if position >= begin + share {
            shares.push(first..stretches.len());
            (first, begin) = (stretches.len(), position);
        }
    }
    shares.push(first..stretches.len());
    Ok((stretches, shares))
}

/// A run of text or a part of one, and the special token after it.
#[derive(Debug)]
struct Stretch {
    text: Range<usize>,
    special: Option<u32>,
}

/// The ids of a share of a text.
#[derive(Debug, Default)]
struct Part {
    ids: Vec<u32>,
    error: Option<Error>,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::{Encoding, SpecialTokens, Splitter, Vocabulary};

    #[test]
    fn results_come_in_order_on_any_number_of_threads() {
        for threads in [0, 1, 2, 3, 7] {
            for shares in [0, 1, 2, 40] {
                let mut taken = Vec::new();
                let work = |share: usize, result: &mut Vec<usize>| {
                    if share.is_multiple_of(5) {
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                    result.clear();
                    result.push(share);
                };
                let take = |result: &Vec<usize>| {
                    taken.extend_from_slice(result);
                    Ok::<_, ()>(())
                };
                in_order(shares, threads, work, at_once, take).unwrap();
                assert_eq!(taken, (0..shares).collect::<Vec<_>>(), "{threads} threads");
            }
        }
    }

    fn at_once<E>(job: &mut (dyn FnMut() + Send)) -> std::result::Result<(), E> {
        job();
        Ok(())
    }

    #[test]
    fn the_first_error_ends_it() {
        for threads in [1, 3] {
            let worked = AtomicUsize::new(0);
            let work = |share: usize, result: &mut usize| {
                worked.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_micros(100));
                *result = share;
            };
            let take = |&share: &usize| if share < 3 { Ok(()) } else { Err(share) };
            assert_eq!(in_order(100_000, threads, work, at_once, take), Err(3));
            assert!(worked.into_inner() < 50_000);
        }
    }

    #[test]
    fn a_panic_is_passed_on() {
        for threads in [1, 3] {
            let work = |share: usize, _: &mut ()| assert!(share != 20, "share 20");
            let run = || in_order(50, threads, work, at_once, |_: &()| Ok::<_, ()>(()));
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        }
    }

    const FAMILIES: [&str; 4] = [
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
            r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    ];

    /// Returns an encoding of bytes, and of tokens across every position where a cut could be
    /// wrong.
    fn encoding(pattern: &str) -> Encoding {
        let words =
            [" a", "a ", "  ", "'s", "a'", ", ", "的。", "。的", "的的", "|>", "<|", "\n\n", "11"];
        let bytes = (0..=255).map(|byte: u8| (vec![byte], u32::from(byte)));
        let words = words.iter().zip(256..).map(|(word, id)| (word.as_bytes().to_vec(), id));
        let special = [("<|a|>", 900), ("<|a|>b", 901), ("a ", 902), ("|", 903)];
        let special = special.map(|(name, id)| (name.to_owned(), id));
        let vocabulary = Vocabulary::build(bytes.chain(words).collect()).unwrap();
        let special = SpecialTokens::new(special).unwrap();
        Encoding::new(vocabulary, Splitter::new(pattern).unwrap(), special).unwrap()
    }

    fn check(encoding: &Encoding, text: &str, allowed: &Selection, threads: usize, share: usize) {
        let (mut expected, mut ids) = (Vec::new(), vec![7]);
        encoding.encode_normal(text, allowed, &mut expected).unwrap();
        encode_in_shares(encoding, text, allowed, threads, share, &mut ids).unwrap();
        assert_eq!(ids[1..], expected, "{text:?} {allowed:?} in shares of {share}");
    }

    proptest! {
        #![proptest_config(crate::test_support::config(256))]

        #[test]
        fn ids_are_those_of_one_thread(
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "B", " ", "  ", "\n", "\r\n", "'s", "'", "的", "的的", "。", "，", "1", "11",
                "<|a|>", "<|a|>b", "<|", "|>", "|", "/", "é", "e\u{301}", "\u{3000}", "🦀", "ſ",
            ]), 0..80),
            allowed in prop::sample::subsequence(vec!["<|a|>", "<|a|>b", "a ", "|"], 0..=4),
            share in 1usize..60,
        ) {
            let text = parts.concat();
            for pattern in FAMILIES {
                let encoding = encoding(pattern);
                let allowed = encoding.special_tokens().select(allowed.iter().copied());
                for allowed in [&allowed, &Selection::None, &Selection::All] {
                    check(&encoding, &text, allowed, 1, share);
                }
                check(&encoding, &text, &allowed, 3, share);
            }
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let encoding = encoding(FAMILIES[1]);
        let text = "的的的。a word, <|a|>11 的".repeat(20_000);
        let (_, shares) = shares(&encoding, &text, &Selection::None, 50_000).unwrap();
        assert!(shares.len() >= text.len() / 51_000, "{}", shares.len());
        for allowed in [Selection::None, Selection::All] {
            let (mut expected, mut ids) = (Vec::new(), Vec::new());
            let request = Request::allowing(allowed);
            encoding.encode(&text, &request, &mut expected).unwrap();
            encoding.encode_on_threads(&text, &request, 4, &mut ids).unwrap();
            assert!(ids == expected);
        }
    }

    #[test]
    fn texts_without_a_cut_are_one_share() {
        let text = "的".repeat(100_000);
        for pattern in [FAMILIES[1], "(?s:.)"] {
            let encoding = encoding(pattern);
            assert_eq!(shares(&encoding, &text, &Selection::All, 1000).unwrap().1.len(), 1);
            check(&encoding, &text, &Selection::All, 3, 1000);
        }
    }

    #[test]
    fn an_error_is_that_of_one_thread() {
        let letters = (b'a'..=b'z').chain([b' ']).enumerate();
        let tokens = letters.map(|(id, byte)| (vec![byte], id as u32)).collect();
        let vocabulary = Vocabulary::build(tokens).unwrap();
        let splitter = Splitter::new(FAMILIES[0]).unwrap();
        let encoding =
            Encoding::new(vocabulary, splitter, SpecialTokens::new([]).unwrap()).unwrap();
        let text = "a word ".repeat(1000) + "? " + &"a word ".repeat(1000) + "! ";
        let one = encoding.encode(&text, &Request::ORDINARY, &mut Vec::new()).unwrap_err();
        let run = encode_in_shares(&encoding, &text, &Selection::None, 3, 500, &mut Vec::new());
        assert_eq!(run.unwrap_err().to_string(), one.to_string());
    }
}
