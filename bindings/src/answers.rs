//! Marks the text that the model writes in the assistant's turns of a rendered template.

use std::ops::Range;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString, PyTuple};

use crate::audit::Field;
use crate::objects::{new_list, new_tuple_of, push};
use crate::taint::{joined, length, substring};

/// Text of the template before an answer: the whole text after the previous message, prefixes of
/// the generation prompt, longest first, and whether the model continues the open turn.
#[derive(FromPyObject)]
pub struct Header<'py>(Bound<'py, PyString>, Vec<Bound<'py, PyString>>, bool);

/// Sets `Origin.is_answer` for the template's text inside the assistant's turns, and returns the
/// segments. A segment that has both the header of a turn and text of the answer is cut in two.
///
/// `turns` has the index of a header in `headers` for each assistant message, and None for other
/// messages. If the result of a call is inside the turn, the model's text ends at the first of
/// `endings` in the turn.
#[pyfunction]
pub fn mark_answers<'py>(
    segments: &Bound<'py, PyList>,
    turns: Vec<Option<usize>>,
    headers: Vec<Header<'py>>,
    endings: Vec<Bound<'py, PyString>>,
) -> PyResult<Bound<'py, PyList>> {
    let mut marker = Marker { parts: Vec::new(), result: Vec::new(), until: None };
    marker.read(segments)?;
    let (mut done, mut before) = (0, None);
    let starts = marker.turns()?;
    for (place, &(begin, message)) in starts.iter().enumerate() {
        let end = starts.get(place + 1).map_or(marker.parts.len(), |next| next.0);
        let header = message.and_then(|message| *turns.get(message)?);
        if let Some(header) = header.and_then(|header| headers.get(header)) {
            marker.keep(done..begin)?;
            marker.until = marker.last_ending(begin..end, &endings)?;
            marker.add_answer(before, begin..end, header)?;
            (done, before) = (end, Some(begin));
        }
    }
    marker.keep(done..marker.parts.len())?;
    new_list(segments.py(), marker.result)
}

/// A segment, with the message and the field of its origin.
struct Labeled<'py> {
    segment: Bound<'py, PyTuple>,
    origin: Bound<'py, PyTuple>,
    message: Option<usize>,
    field: Field,
}

impl<'py> Labeled<'py> {
    fn text(&self) -> PyResult<Bound<'py, PyAny>> {
        self.segment.get_item(0)
    }

    /// Returns the segment with a different text or origin.
    fn with(
        &self,
        text: Bound<'py, PyAny>,
        origin: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let item = |place| self.segment.get_item(place);
        let items = [text, item(1)?, item(2)?, item(3)?, item(4)?, item(5)?, origin, item(7)?];
        new_tuple_of(&self.segment.get_type(), items)
    }
}

struct Marker<'py> {
    parts: Vec<Labeled<'py>>,
    result: Vec<Bound<'py, PyAny>>,
    /// Last segment of the turn that the model writes, and how many characters the model writes.
    until: Option<(usize, usize)>,
}

impl<'py> Marker<'py> {
    fn read(&mut self, segments: &Bound<'py, PyList>) -> PyResult<()> {
        for segment in segments {
            let segment = segment.cast_into::<PyTuple>()?;
            let origin = segment.get_item(6)?.cast_into::<PyTuple>()?;
            let (message, field) = match self.parts.last() {
                // Adjacent template texts share one origin.
                Some(last) if last.origin.is(&origin) => (last.message, last.field),
                _ => (origin.get_item(0)?.extract()?, Field::of(&origin.get_item(2)?)?),
            };
            push(&mut self.parts, Labeled { segment, origin, message, field })?;
        }
        Ok(())
    }

    /// Returns each position where the template moves to another message, and the message's index.
    fn turns(&self) -> PyResult<Vec<(usize, Option<usize>)>> {
        let (mut turns, mut turn) = (Vec::new(), None);
        for (at, part) in self.parts.iter().enumerate() {
            let is_other = match part.field {
                Field::Template => part.message != turn,
                field => field.is_spoken() && part.message > turn,
            };
            if is_other {
                turn = part.message;
                push(&mut turns, (at, turn))?;
            }
        }
        Ok(turns)
    }

    /// Returns the end of a model's call if a result is inside the turn: the part, and the number
    /// of its characters.
    fn last_ending(
        &self,
        turn: Range<usize>,
        endings: &[Bound<'py, PyString>],
    ) -> PyResult<Option<(usize, usize)>> {
        let is_inside = self.parts.get(turn.end).is_some_and(|part| part.field.is_spoken());
        for ending in endings.iter().filter(|_| is_inside) {
            for at in turn.clone().rev().filter(|&at| self.parts[at].field == Field::Template) {
                let text = self.parts[at].text()?;
                if let Some(found) = find(&text, ending, length(&text)?)? {
                    return Ok(Some((at, found + length(ending)?)));
                }
            }
        }
        Ok(None)
    }

    fn keep(&mut self, places: Range<usize>) -> PyResult<()> {
        for part in &self.parts[places] {
            push(&mut self.result, part.segment.clone().into_any())?;
        }
        Ok(())
    }

    /// Adds the segments of a turn. The previous assistant turn begins at `before`.
    fn add_answer(
        &mut self,
        before: Option<usize>,
        turn: Range<usize>,
        header: &Header<'py>,
    ) -> PyResult<()> {
        let is_template = |part: &Labeled<'py>| part.field == Field::Template;
        let written = self.parts[before.unwrap_or(0)..turn.start].iter().rev();
        let mut first = turn.start - written.take_while(|part| is_template(part)).count();
        if before.is_some_and(|before| first <= before) {
            // The turn is empty, so the header found belongs to another turn.
            first = turn.start;
        }
        let is_spoken = |part: &Labeled<'py>| part.field.is_spoken();
        let spoken = self.parts[turn.clone()].iter().position(is_spoken);
        let spoken = spoken.map_or(turn.end, |count| turn.start + count);
        let Some(mut rest) = header.end_in(&self.joined(first..spoken)?)? else {
            if !header.2 {
                // The answer begins with the text of the message.
                return self.keep(turn);
            }
            return self.mark(turn, None);
        };
        while first < spoken {
            let length = length(&self.parts[first].text()?)?;
            if rest < length {
                break;
            }
            rest -= length;
            first += 1;
        }
        if first < turn.start {
            return self.mark(turn, None);
        }
        self.keep(turn.start..first)?;
        self.mark(first..turn.end, (rest > 0 && first < spoken).then_some(rest))
    }

    /// Adds segments as text of an answer, the first segment only from character `cut` on.
    fn mark(&mut self, places: Range<usize>, cut: Option<usize>) -> PyResult<()> {
        let mut last: Option<(&Bound<'py, PyTuple>, Bound<'py, PyAny>)> = None;
        for (at, part) in places.clone().zip(&self.parts[places.clone()]) {
            if part.field != Field::Template || self.until.is_some_and(|(last, _)| at > last) {
                push(&mut self.result, part.segment.clone().into_any())?;
                continue;
            }
            let mut text = part.text()?;
            let mut tail = None;
            if let Some((last, end)) = self.until
                && at == last
                && end < length(&text)?
            {
                tail = Some(substring(&text, end, length(&text)?)?);
                text = substring(&text, 0, end)?;
            }
            if let Some(cut) = cut
                && at == places.start
            {
                let head = substring(&text, 0, cut)?;
                text = substring(&text, cut, length(&text)?)?;
                push(&mut self.result, part.with(head, part.origin.clone().into_any())?)?;
            }
            let origin = match &last {
                Some((known, answer)) if known.is(&part.origin) => answer.clone(),
                _ => of_answer(&part.origin)?,
            };
            last = Some((&part.origin, origin.clone()));
            push(&mut self.result, part.with(text, origin)?)?;
            if let Some(tail) = tail {
                push(&mut self.result, part.with(tail, part.origin.clone().into_any())?)?;
            }
        }
        Ok(())
    }

    fn joined(&self, places: Range<usize>) -> PyResult<Bound<'py, PyAny>> {
        let mut texts = Vec::new();
        for part in &self.parts[places] {
            push(&mut texts, part.text()?)?;
        }
        joined(new_list(self.parts[0].segment.py(), texts)?.as_any())
    }
}

/// Returns an origin with `is_answer` set.
fn of_answer<'py>(origin: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let item = |place| origin.get_item(place);
    let is_answer = PyBool::new(origin.py(), true).to_owned().into_any();
    new_tuple_of(&origin.get_type(), [item(0)?, item(1)?, item(2)?, item(3)?, item(4)?, is_answer])
}

impl<'py> Header<'py> {
    /// Returns the end of the header in the template's text before an answer.
    fn end_in(&self, text: &Bound<'py, PyAny>) -> PyResult<Option<usize>> {
        let Self(whole, names, is_open) = self;
        let size = length(whole)?;
        let is_first = size > 0 && find(text, whole, size)? == Some(0);
        for name in names.iter().filter(|_| *is_open || !is_first) {
            if let Some(at) = find(text, name, length(text)?)? {
                return Ok(Some(at + length(name)?));
            }
        }
        Ok(is_first.then_some(size))
    }
}

/// Returns the position of a name in the first `end` characters of a text.
fn find(
    text: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    end: usize,
) -> PyResult<Option<usize>> {
    let end = ffi::Py_ssize_t::try_from(end)?;
    // SAFETY: attached; both are `str`. The call clamps `end` to the text, and returns -1 if the
    // name is absent, or -2 with an exception set.
    let found = unsafe { ffi::PyUnicode_Find(text.as_ptr(), name.as_ptr(), 0, end, 1) };
    if found == -2 {
        return Err(PyErr::fetch(text.py()));
    }
    Ok(usize::try_from(found).ok())
}
