//! Counts the words for training: the pieces of normalized, pre-tokenized texts.
//!
//! Where whitespace separates words in any context, texts are first cut there, and each distinct
//! run is normalized only once. The pieces of a pattern are treated the same way.

use std::borrow::Cow;

use crate::Splitter;
use crate::polling::poll;
use crate::train::counting::count_batches;
use crate::train::piece_table::PieceTable;

use crate::components::offsets::AlignedText;
use crate::components::split::Plan;
use crate::error::Result;
use crate::pipeline::assembly::Pipeline;
use crate::pipeline::tokens::PieceTracer;
use crate::pipeline::walk::{Plain, Tracer};

/// Counts of words, and of runs of text that are split into words later.
#[derive(Debug, Default)]
pub struct Counts {
    runs: PieceTable,
    /// Counts of words alone.
    pub words: PieceTable,
}

impl Counts {
    /// Returns the memory in use, in bytes.
    pub fn memory(&self) -> usize {
        self.runs.memory() + self.words.memory()
    }

    /// Returns the number of distinct words and runs.
    pub fn len(&self) -> usize {
        self.runs.len() + self.words.len()
    }

    /// Returns true if there are no words and no runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.runs.merge(&other.runs)?;
        self.words.merge(&other.words)
    }

    /// Adds `times` to the count of a word.
    pub fn add(&mut self, word: &str, times: u64) -> Result<()> {
        self.words.add(word.as_bytes(), times)
    }
}

/// How a text is divided into lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// The text is not divided.
    Whole,
    /// Each line counts as a text, with its line end.
    Kept,
    /// Each line counts as a text, without its line end.
    Stripped,
}

/// Counts the words of texts with the pipeline of a tokenizer.
#[derive(Debug)]
pub struct WordCounter {
    /// The tokenizer, with a placeholder model that keeps no words.
    tokenizer: Pipeline,
    way: Way,
}

/// Method of counting words.
#[derive(Debug)]
enum Way {
    /// By runs between whitespace.
    Chunks,
    /// By the pieces of a pattern, with a space before each text if required.
    Pattern { splitter: Box<Splitter>, prefix_space: bool },
    /// By all steps of the pipeline.
    Steps,
}

/// A placeholder model that every pipeline accepts.
const ANY_MODEL: &str = r#"{"type":"WordLevel","vocab":{},"unk_token":""}"#;

impl WordCounter {
    /// Creates a counter with the normalizer, the pre-tokenizer and the added tokens of a tokenizer.
    pub fn new(tokenizer: &Pipeline) -> Result<Self> {
        let mut tokenizer = tokenizer.clone();
        tokenizer.set_model_json(ANY_MODEL)?;
        let way = match tokenizer.split().plan() {
            _ if tokenizer.chunks().is_some() => Way::Chunks,
            Plan::Pattern { pattern, prefix_space } => Way::Pattern {
                splitter: Box::new(Splitter::new(pattern)?),
                prefix_space: *prefix_space,
            },
            _ => Way::Steps,
        };
        Ok(Self { tokenizer, way })
    }

    /// Counts the words of a text. As in `tokenizers`, each added token in the text is a word.
    pub fn count(&self, text: &str, lines: Lines, counts: &mut Counts) -> Result<()> {
        if lines == Lines::Whole {
            return self.count_one(text, counts);
        }
        text.split_inclusive('\n').try_for_each(|line| {
            let stripped =
                line.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
            match lines {
                Lines::Stripped => self.count_one(stripped.unwrap_or(line), counts),
                _ => self.count_one(line, counts),
            }
        })
    }

    fn count_one(&self, text: &str, counts: &mut Counts) -> Result<()> {
        if let Way::Steps = self.way {
            return self.tokenizer.walk(
                text,
                &mut PieceTracer(|piece: &AlignedText, _| {
                    poll(piece.text.len())?;
                    counts.add(&piece.text, 1)
                }),
            );
        }
        self.tokenizer.walk(text, &mut Counting { way: &self.way, counts })
    }

    /// Returns the counts of all words, after splitting runs into words.
    pub fn words(&self, counts: Counts) -> Result<PieceTable> {
        let Counts { runs, mut words } = counts;
        let (split, chunks) = (self.tokenizer.split(), self.tokenizer.chunks());
        for (run, count) in runs.iter() {
            poll(run.len())?;
            // Runs are cut at character boundaries.
            let Ok(run) = std::str::from_utf8(run) else { continue };
            let mut add = |word: &str| words.add(word.as_bytes(), count);
            match (&self.way, chunks) {
                (Way::Chunks, Some(chunks)) => chunks.each_word(split, run, add)?,
                _ if split.is_byte_level() => {
                    add(&crate::components::bytes::text_of(run.as_bytes()))?
                }
                _ => add(run)?,
            }
        }
        Ok(words)
    }
}

/// Receives the runs of a walk, without the origin of each byte.
struct Counting<'a> {
    way: &'a Way,
    counts: &'a mut Counts,
}

impl Tracer for Counting<'_> {
    type Form = Plain;

    fn added(&mut self, text: &Cow<'_, str>, _: u32) -> Result<()> {
        self.counts.add(text, 1)
    }

    fn run(&mut self, tokenizer: &Pipeline, text: Cow<'_, str>, _: Option<usize>) -> Result<()> {
        match self.way {
            Way::Pattern { splitter, prefix_space } => {
                let text = match *prefix_space && !text.is_empty() && !text.starts_with(' ') {
                    true => Cow::Owned(format!(" {text}")),
                    false => text,
                };
                let mut pieces = splitter.pieces(&text);
                count_batches(&text, &mut self.counts.runs, |batch| pieces.fill(batch))
            }
            _ => tokenizer.split().each_piece(&text, |piece| self.counts.add(piece, 1)),
        }
    }

    fn shortcut(&mut self, tokenizer: &Pipeline, text: &Cow<'_, str>) -> Result<bool> {
        let Some(chunks) = tokenizer.chunks().filter(|_| matches!(self.way, Way::Chunks)) else {
            return Ok(false);
        };
        if chunks.has_names(text, tokenizer.added())? {
            return Ok(false);
        }
        chunks.count(text, &mut self.counts.runs)
    }
}
