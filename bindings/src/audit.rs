//! Masks for training: the native half of `bpe_engine.prompt.Audit`.

use bpe_core::memory::reserve;
use bpe_core::segments::{Origin, Origins};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList, PyString, PyTuple, PyType};

use crate::errors::OrRaise;
use crate::interned::interned;
use crate::objects::{collected, new_bytearray};
use crate::pipeline::PyPipeline;
use crate::prompt::read;
use crate::{buffer_pool, gil, ids, int_cache};

/// The ids of a prompt and their origins.
#[pyclass(frozen, module = "bpe_engine._core")]
pub struct AuditedIds {
    ids: Vec<u32>,
    origins: Origins,
}

/// Encodes segments, and keeps the origin of each id.
#[pyfunction]
pub fn audit_segments(
    source: &Bound<'_, PyPipeline>,
    segments: &Bound<'_, PyAny>,
    is_joined: bool,
) -> PyResult<AuditedIds> {
    let pipeline = &*PyPipeline::current(source)?;
    let prompt = read(pipeline, segments, is_joined)?;
    let mut ids = buffer_pool::IDS.take(buffer_pool::likely_ids(prompt.size()));
    let mut origins = Origins::new();
    let work = || prompt.encode_with_origins(pipeline, is_joined, &mut ids, &mut origins);
    gil::run(segments.py(), prompt.size(), work)?;
    Ok(AuditedIds { ids, origins })
}

impl Drop for AuditedIds {
    fn drop(&mut self) {
        buffer_pool::IDS.give(std::mem::take(&mut self.ids));
    }
}

/// Options of `Audit.mask`: whether to keep the token that ends a turn, only the last message,
/// reasoning, ids that mix bytes of two parts, and only text of fields; and the messages to keep.
type Choices = (bool, bool, bool, bool, bool, Option<Vec<i64>>);

/// Class and arguments for `pickle`.
type Reduced<'py> = (Bound<'py, PyType>, (Bound<'py, PyList>, Bound<'py, PyList>));

#[pymethods]
impl AuditedIds {
    /// Restores the result of `__reduce__`.
    #[new]
    fn new(ids: &Bound<'_, PyAny>, origins: Vec<usize>) -> PyResult<Self> {
        let ids = ids::read(ids)?;
        let (runs, rest) = origins.as_chunks::<5>();
        let is_span = |&[_, _, first, last, _]: &[usize; 5]| first <= last && last < usize::MAX;
        let is_whole = rest.is_empty()
            && runs.iter().all(is_span)
            && runs.is_sorted_by(|[before, ..], [after, ..]| before < after)
            && runs.last().map_or(0, |[end, ..]| *end) == ids.len();
        if !is_whole {
            return Err(PyValueError::new_err("the origins do not match the ids"));
        }
        let origins = runs.iter().map(|&[end, segment, first, last, is_special]| {
            (end, Origin { segment, segments: (first, last), is_special: is_special != 0 })
        });
        Ok(Self { ids, origins: origins.collect() })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let (py, this) = (slf.py(), slf.get());
        let mut origins = Vec::new();
        for &(end, Origin { segment, segments: (first, last), is_special }) in &this.origins {
            let run = [end, segment, first, last, usize::from(is_special)];
            origins.extend_from_slice(&run);
        }
        Ok((slf.get_type(), (this.ids(py)?, int_cache::positions(py, &origins)?)))
    }

    fn __len__(&self) -> usize {
        self.ids.len()
    }

    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        int_cache::list(py, &self.ids)
    }

    /// Returns the segment of each id.
    fn segments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut owners = vec![0; self.ids.len()];
        for (ids, origin) in self.runs() {
            owners[ids].fill(origin.segment);
        }
        int_cache::positions(py, &owners)
    }

    /// Returns 1 for each id that is a special token, 0 for other ids.
    fn special<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        let mut bits = vec![0; self.ids.len()];
        for (ids, origin) in self.runs() {
            bits[ids].fill(u8::from(origin.is_special));
        }
        new_bytearray(py, &bits)
    }

    /// Returns, for each of the `parts` parts of a prompt, the number of ids, and how many of these
    /// end in another part. `part_of` has the part of each segment. An id belongs to the part with
    /// its first byte.
    fn totals(&self, part_of: Vec<usize>, parts: usize) -> PyResult<(Vec<usize>, Vec<usize>)> {
        let wrong = || PyValueError::new_err("the parts do not match the prompt");
        let (mut counts, mut crossing) = (vec![0; parts], vec![0; parts]);
        for (ids, origin) in self.runs() {
            let own = *part_of.get(origin.segment).ok_or_else(wrong)?;
            let last = *part_of.get(origin.segments.1).ok_or_else(wrong)?;
            *counts.get_mut(own).ok_or_else(wrong)? += ids.len();
            if last != own {
                crossing[own] += ids.len();
            }
        }
        Ok((counts, crossing))
    }

    /// Returns 1 for each id of a mask, 0 for other ids.
    fn mask<'py>(
        &self,
        segments: &Bound<'py, PyList>,
        role: &Bound<'py, PyString>,
        choices: Choices,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = segments.py();
        let labels = Labels::read(segments, role)?;
        let (has_end, is_last, has_reasoning, is_mixed, is_said, messages) = choices;
        let chosen = if is_last || messages.is_some() {
            Some(labels.chosen(is_last, messages)?)
        } else {
            None
        };
        let is_chosen = |message: Option<i64>| {
            chosen.as_ref().is_none_or(|chosen| {
                message.is_some_and(|message| chosen.binary_search(&message).is_ok())
            })
        };
        let specials = self.specials();
        let turns = if is_said { Turns::default() } else { labels.turns(&specials, has_reasoning) };
        let kept = labels.each.iter().enumerate().map(|(index, label)| {
            let place = label.place.as_ref();
            let is_reasoning = place.is_some_and(|place| place.field == Field::Reasoning);
            (turns.is_in(index) || label.is_said && (has_reasoning || !is_reasoning))
                && is_chosen(place.and_then(|place| place.message))
        });
        let counts = labels.counts(kept);
        let mut bits = vec![0; self.ids.len()];
        for (ids, origin) in self.runs() {
            let (kept, all) = within(&counts, origin);
            bits[ids].fill(u8::from(kept > 0 && (is_mixed || kept == all)));
        }
        for &(segment, end) in &turns.ends {
            // The last segment may continue after the turn with text of the template.
            let end = end + usize::from(has_end);
            for (ids, _) in self.runs().filter(|(_, origin)| origin.segment == segment) {
                bits[ids.start.max(end)..ids.end.max(end)].fill(0);
            }
        }
        if has_end && !labels.is_tagged {
            for (message, place) in self.ends(&labels, &specials) {
                let is_known = turns.messages.binary_search(&message).is_ok();
                if is_chosen(Some(message)) && !is_known {
                    bits[place] = 1;
                }
            }
        }
        int_cache::bits(py, &bits)
    }

    /// Returns the indices of ids that mix bytes of this role and other bytes.
    fn mixed<'py>(
        &self,
        segments: &Bound<'py, PyList>,
        role: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = segments.py();
        let labels = Labels::read(segments, role)?;
        let counts = labels.counts(labels.each.iter().map(|label| label.is_said));
        let is_mixed = |origin| {
            let (said, all) = within(&counts, origin);
            said > 0 && said < all
        };
        let places = self.runs().filter(|(_, origin)| is_mixed(origin)).flat_map(|(ids, _)| ids);
        int_cache::positions(py, &collected(places.map(Ok))?)
    }
}

impl AuditedIds {
    /// Returns each range of consecutive ids with the same origin, and the origin.
    fn runs(&self) -> impl Iterator<Item = (std::ops::Range<usize>, &Origin)> {
        let starts = std::iter::once(0).chain(self.origins.iter().map(|run| run.0));
        starts.zip(&self.origins).map(|(start, (end, origin))| (start..*end, origin))
    }

    /// Returns the segment and the index of each special token, in order.
    fn specials(&self) -> Vec<(usize, usize)> {
        let mut specials = Vec::new();
        for (ids, origin) in self.runs().filter(|(_, origin)| origin.is_special) {
            ids.into_iter().for_each(|place| specials.push((origin.segment, place)));
        }
        specials.sort_unstable();
        specials
    }

    /// Returns each message with text and the index of the id that ends its turn: the first special
    /// token that the template writes after the last text of the message.
    fn ends(&self, labels: &Labels, specials: &[(usize, usize)]) -> Vec<(i64, usize)> {
        let in_segment = |segment: usize| {
            let from = specials.partition_point(|special| special.0 < segment);
            specials[from..].iter().take_while(move |it| it.0 == segment).map(|it| it.1)
        };
        let mut last_texts = Vec::new();
        for (index, label) in labels.each.iter().enumerate() {
            if let Some(TextOrigin { message: Some(message), field, .. }) = label.place
                && label.is_said
                && label.has_text
            {
                last_texts.push((message, index, field == Field::Calls));
            }
        }
        last_texts.sort_unstable();
        let mut tails = Vec::new();
        for (place, &(message, index, is_call)) in last_texts.iter().enumerate() {
            if last_texts.get(place + 1).is_some_and(|next| next.0 == message) {
                continue;
            }
            let (mut tail, mut is_cut) = (Vec::new(), false);
            for (segment, label) in labels.each.iter().enumerate().skip(index + 1) {
                match &label.place {
                    _ if label.is_empty => {}
                    Some(place) if place.field == Field::Template => {
                        if place.message != Some(message) {
                            break;
                        }
                        in_segment(segment).for_each(|id| tail.push(id));
                    }
                    _ => {
                        is_cut = true;
                        break;
                    }
                }
            }
            if !tail.is_empty() {
                tails.push((message, tail, is_call, is_cut));
            }
        }
        // Tags around calls may also be special tokens: prefer a token that also ends other
        // messages.
        let mut usual = Vec::new();
        for (_, tail, ..) in tails.iter().filter(|(.., is_call, _)| !is_call) {
            usual.push(self.ids[tail[0]]);
        }
        usual.sort_unstable();
        let mut ends = Vec::new();
        for (message, tail, is_call, is_cut) in &tails {
            let is_usual = |place: &usize| usual.binary_search(&self.ids[*place]).is_ok();
            let other = if *is_cut { tail[0] } else { tail[tail.len() - 1] };
            let of_call = || tail.iter().copied().find(is_usual).unwrap_or(other);
            ends.push((*message, if *is_call { of_call() } else { tail[0] }));
        }
        ends
    }
}

/// Returns how many segments of an origin are kept, and how many are nonempty.
fn within(counts: &[(usize, usize)], origin: &Origin) -> (usize, usize) {
    let (first, last) = origin.segments;
    match (counts.get(first), counts.get(last + 1)) {
        (Some(before), Some(after)) => (after.0 - before.0, after.1 - before.1),
        _ => (0, 0),
    }
}

/// Field of an origin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Template,
    Content,
    Reasoning,
    Calls,
    Other,
}

impl Field {
    /// Reads the name of a field.
    pub fn of(name: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = name.py();
        let names = [
            (interned!(py, "template"), Self::Template),
            (interned!(py, "content"), Self::Content),
            (interned!(py, "reasoning"), Self::Reasoning),
            (interned!(py, "tool_calls"), Self::Calls),
        ];
        for (known, field) in names {
            if name.is(known) || name.eq(known)? {
                return Ok(field);
            }
        }
        Ok(Self::Other)
    }

    /// Whether the field is text of the message's speaker.
    pub fn is_spoken(self) -> bool {
        matches!(self, Self::Content | Self::Reasoning | Self::Calls)
    }
}

/// Origin of a text in a rendered template.
#[derive(Clone, Copy)]
struct TextOrigin {
    message: Option<i64>,
    field: Field,
    is_role: bool,
    /// Whether the model writes the text, which is part of the template.
    is_answer: bool,
}

struct Label {
    place: Option<TextOrigin>,
    is_empty: bool,
    has_text: bool,
    /// Whether the caller named the role.
    is_labeled: bool,
    /// Whether the text is the role's own.
    is_said: bool,
}

/// Turns that the model writes.
#[derive(Default)]
struct Turns {
    /// Whether each segment is the template's text in such a turn.
    is_in: Vec<bool>,
    /// Messages in ascending order.
    messages: Vec<i64>,
    /// Segment of the token that ends a turn, and the index of its id.
    ends: Vec<(usize, usize)>,
}

impl Turns {
    fn is_in(&self, segment: usize) -> bool {
        self.is_in.get(segment).is_some_and(|&is_in| is_in)
    }
}

impl Label {
    fn message(&self) -> Option<i64> {
        self.place.and_then(|place| place.message)
    }

    fn field(&self) -> Option<Field> {
        self.place.map(|place| place.field)
    }

    /// Whether the model writes the text, which is part of the template.
    fn is_answer(&self) -> bool {
        self.place.is_some_and(|place| place.is_answer && place.field == Field::Template)
    }
}

/// Origin of each segment's text.
struct Labels {
    each: Vec<Label>,
    /// Whether the template's `generation` tags decide what the assistant said.
    is_tagged: bool,
}

impl Labels {
    /// Reads the labels of segments and compares their roles with `role`.
    fn read(segments: &Bound<'_, PyList>, role: &Bound<'_, PyString>) -> PyResult<Self> {
        let py = segments.py();
        let mut labels = Self { each: Vec::new(), is_tagged: false };
        reserve(&mut labels.each, segments.len()).or_raise()?;
        let is_assistant = role.as_any().eq(interned!(py, "assistant"))?;
        // The message around which the template last wrote, and the model's last message.
        let (mut around, mut answered) = (None, None);
        // Segments that may only repeat a call's name around its result: text of another message,
        // or text after the model's text in the same message.
        let mut doubtful: Vec<(usize, bool)> = Vec::new();
        let mut is_answer = false;
        let mut last: Option<(Bound<'_, PyAny>, Option<TextOrigin>)> = None;
        for segment in segments {
            let segment = segment.cast_into::<PyTuple>()?;
            let has_text = segment.get_borrowed_item(0)?.cast::<PyString>()?.len()? > 0;
            let has_ids = segment.len() >= 6
                && segment.get_borrowed_item(4)?.eq(interned!(py, "tokens"))?
                && segment.get_borrowed_item(5)?.len()? > 0;
            let item = |place| {
                if place < segment.len() {
                    segment.get_item(place)
                } else {
                    Ok(py.None().into_bound(py))
                }
            };
            let origin = item(6)?;
            let place = match &last {
                Some((same, place)) if same.is(&origin) => *place,
                _ => read_place(&origin, role, is_assistant, &mut labels.is_tagged)?,
            };
            last = Some((origin, place));
            if let Some(TextOrigin {
                field: Field::Template, message, is_answer: is_written, ..
            }) = place
                && has_text
            {
                (around, is_answer) = (message, is_written);
                if is_answer {
                    answered = message;
                }
                for (index, is_after) in doubtful.drain(..) {
                    let said: &mut Label = &mut labels.each[index];
                    let is_own = around == said.message() && (is_answer || !is_after);
                    said.is_said = around.is_none() || is_own;
                }
            }
            let label = item(2)?;
            let is_labeled = !label.is_none();
            let is_said = match place {
                _ if is_labeled => label.eq(role)?,
                Some(place) if place.is_role && place.field.is_spoken() => {
                    let is_call = place.field == Field::Calls && answered == place.message;
                    let is_after = is_call && around == answered && !is_answer;
                    if around.is_some() && (around != place.message || is_after) {
                        doubtful.push((labels.each.len(), is_after));
                    }
                    true
                }
                _ => false,
            };
            let is_empty = !has_text && !has_ids;
            labels.each.push(Label { place, is_empty, has_text, is_labeled, is_said });
        }
        for (index, _) in doubtful {
            labels.each[index].is_said = false;
        }
        if labels.is_tagged {
            labels.each.iter_mut().for_each(|label| label.is_said &= label.is_labeled);
        }
        Ok(labels)
    }

    /// Finds the turns that the model writes, with or without tags around reasoning.
    ///
    /// A turn ends at the last special token after its last text. Without one, template text after
    /// a call closes the call, and template text after anything else is not the model's.
    fn turns(&self, specials: &[(usize, usize)], has_reasoning: bool) -> Turns {
        let mut turns = Turns { is_in: vec![false; self.each.len()], ..Turns::default() };
        let mut own = Vec::new();
        for (index, label) in self.each.iter().enumerate() {
            let is_own = label.is_answer() || label.is_said && label.has_text;
            if let Some(message) = label.message()
                && is_own
            {
                own.push((message, index));
            }
        }
        own.sort_unstable();
        for turn in own.chunk_by(|one, two| one.0 == two.0) {
            self.add_turn(&mut turns, turn, specials, has_reasoning);
        }
        turns
    }

    /// Adds a turn, given as pairs of a message and a segment.
    fn add_turn(
        &self,
        turns: &mut Turns,
        turn: &[(i64, usize)],
        specials: &[(usize, usize)],
        has_reasoning: bool,
    ) {
        let label = |at: usize| &self.each[turn[at].1];
        if !(0..turn.len()).any(|at| label(at).is_answer()) {
            return;
        }
        let spoken = |mut places: std::ops::Range<usize>, is_last: bool| {
            let is_spoken = |&at: &usize| !label(at).is_answer();
            let found = if is_last { places.rfind(is_spoken) } else { places.find(is_spoken) };
            found.map(|at| (at, label(at).field()))
        };
        let last = spoken(0..turn.len(), true);
        let tail = last.map_or(0, |(at, _)| at + 1);
        let last_special = |&(_, segment): &(i64, usize)| {
            let until = specials.partition_point(|special| special.0 <= segment);
            specials[..until].last().filter(|special| special.0 == segment).copied()
        };
        let ending = turn[tail..].iter().rev().find_map(last_special);
        for (at, &(_, segment)) in turn.iter().enumerate() {
            if !label(at).is_answer() {
                continue;
            }
            turns.is_in[segment] = if at < tail {
                let before = spoken(0..at, true).and_then(|it| it.1);
                let after = spoken(at..turn.len(), false).and_then(|it| it.1);
                let is_closing = before == Some(Field::Reasoning) && after != Some(Field::Calls);
                has_reasoning || !(is_closing || after == Some(Field::Reasoning))
            } else if let Some((end, _)) = ending {
                segment <= end
            } else {
                last.is_none_or(|(_, field)| field == Some(Field::Calls))
            };
        }
        if let Some(ending) = ending {
            turns.ends.push(ending);
        }
        turns.messages.push(turn[0].0);
    }

    /// Returns the messages that a mask keeps, in ascending order.
    fn chosen(&self, is_last: bool, mut messages: Option<Vec<i64>>) -> PyResult<Vec<i64>> {
        if self.each.iter().all(|label| label.place.is_none()) {
            return Err(PyValueError::new_err(
                "the segments do not say which message they come from; make them with \
                 render_template, or choose messages by labels of your own",
            ));
        }
        if let Some(messages) = &mut messages {
            messages.sort_unstable();
        }
        let is_wanted =
            |message: &i64| messages.as_ref().is_none_or(|it| it.binary_search(message).is_ok());
        let own = self.each.iter().filter_map(|label| {
            let is_own = |place: &TextOrigin| label.is_said || place.is_role || place.is_answer;
            let place = label.place.filter(is_own);
            place.and_then(|place| place.message).filter(is_wanted)
        });
        let mut own = own.collect::<Vec<_>>();
        own.sort_unstable();
        own.dedup();
        if is_last {
            own.drain(..own.len().saturating_sub(1));
        }
        Ok(own)
    }

    /// Returns, before each segment, how many segments are kept and how many are nonempty.
    fn counts(&self, kept: impl Iterator<Item = bool>) -> Vec<(usize, usize)> {
        let mut counts = Vec::with_capacity(self.each.len() + 1);
        let (mut count, mut all) = (0, 0);
        counts.push((count, all));
        for (label, is_kept) in self.each.iter().zip(kept) {
            count += usize::from(is_kept && !label.is_empty);
            all += usize::from(!label.is_empty);
            counts.push((count, all));
        }
        counts
    }
}

/// Reads a Python `Origin`, or None.
fn read_place(
    origin: &Bound<'_, PyAny>,
    role: &Bound<'_, PyString>,
    is_assistant: bool,
    is_tagged: &mut bool,
) -> PyResult<Option<TextOrigin>> {
    if origin.is_none() {
        return Ok(None);
    }
    let origin = origin.cast::<PyTuple>()?;
    let message = origin.get_borrowed_item(0)?.extract()?;
    let is_role = origin.get_borrowed_item(1)?.eq(role)?;
    let field = Field::of(&origin.get_item(2)?)?;
    *is_tagged |= is_assistant && origin.get_borrowed_item(4)?.is_truthy()?;
    let is_answer = is_assistant
        && field != Field::Other
        && origin.len() > 5
        && origin.get_borrowed_item(5)?.is_truthy()?;
    Ok(Some(TextOrigin { message, field, is_role, is_answer }))
}
