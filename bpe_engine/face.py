"""`Face`: the Python methods that all tokenizer classes share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, AbstractSet, Any, ClassVar, Literal, overload

from ._arguments import numpy_for, truth
from ._core import Pipeline
from .abilities.stream import StreamDecoder
from .prompt import encode

if TYPE_CHECKING:
    from .abilities.chunks import ChunkSpan, EncodedChunk
    from .abilities.healing import Healed
    from .abilities.ragged import TokenBatch
    from .abilities.shown import ShownTokens
    from .prompt.audit import Audit
    from .prompt.encode import OnControl
    from .prompt.segments import Segment

__all__ = ["Face", "Names"]

Names = Literal["all"] | Collection[str]


class Face(Pipeline):
    """The base class of `Encoding`, `bpe_engine.hf.Tokenizer` and `bpe_engine.Tokenizer`.

    Abilities use the ids of ``encode`` before the post-processor of a tokenizer file runs: without
    special tokens around the text, once if a template repeats the text, and without the file's
    truncation and padding. Offsets refer to the text as given, also where a normalizer changes the
    text.

    ``allowed_special`` lists the names in a text that become special tokens: a collection of names,
    or ``"all"``. ``disallowed_special`` lists the names that raise ValueError, or is ``"all"`` for
    every name that is not allowed. Other names are ordinary text. Added tokens of a file that are
    not special are always recognized. Without these arguments:

    | | `Encoding` | the other classes |
    |---|---|---|
    | allowed | none | all; none if `encode_special_tokens` or `split_special_tokens` is set |
    | disallowed, in methods that return ids | all that are not allowed | none |
    | disallowed, in methods that count or cut | none | none |

    A tokenizer file can allow all of its special tokens or none.
    """

    __slots__ = ()

    _errors: ClassVar[str] = "replace"

    if TYPE_CHECKING:

        @property
        def _label(self) -> str: ...

        @property
        def _special_ids(self) -> AbstractSet[int]: ...

    # ---- Ids of a text ----

    def encode_batch_to_numpy(
        self,
        texts: Iterable[str],
        *,
        num_threads: int | None = None,
        allowed_special: Names | None = None,
        disallowed_special: Names | None = None,
    ) -> TokenBatch:
        """Encodes each text with `encode` into rows of one numpy array. Needs numpy.

        Args:
            texts: A list of str; a numpy array of strings; or a column of strings from pyarrow,
                pandas, polars or another package that exports Arrow data. With the extra
                ``arrays``, text of the types ``string`` and ``large_string`` is read in place,
                without creating a ``str``; views and dictionaries are converted first.
            num_threads: Maximum number of threads; None for one per core. Small batches use fewer.
            allowed_special, disallowed_special: As in `encode`.

        Returns:
            A `TokenBatch`: ``values``, the ids of all texts (uint32), and ``row_splits``,
            ``len(texts) + 1`` row boundaries (int64). Row ``i`` has the ids of text ``i``.

        Raises:
            TypeError: `texts` is neither a list nor a column of strings.
            ValueError: A row is null, a row of a column is not UTF-8, a column's buffers are
                inconsistent, or a text contains a disallowed name.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> batch = gpt2.encode_batch_to_numpy(["hello world", "", "goodbye"])
        >>> batch.values.tolist(), batch.row_splits.tolist()
        ([31373, 995, 11274, 16390], [0, 2, 2, 4])
        """
        np = numpy_for("encode_batch_to_numpy", "encode_batch")
        from .abilities.columns import parts_of
        from .abilities.ragged import TokenBatch

        buffer, splits = self._encode_ragged(
            parts_of(texts),
            num_threads,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
        )
        return TokenBatch._of(
            np.frombuffer(buffer, dtype=np.uint32), np.frombuffer(splits, dtype=np.int64)
        )

    # ---- Counting, cutting, searching ----

    def count_batch(
        self,
        texts: Iterable[str],
        *,
        num_threads: int | None = None,
        allowed_special: Names | None = None,
        disallowed_special: Names | None = None,
    ) -> list[int]:
        """Counts the tokens of each text with `count`.

        Args:
            texts, num_threads: As in `encode_batch_to_numpy`; numpy is not needed.
            allowed_special, disallowed_special: As in `count`.

        Raises:
            TypeError: `texts` is neither a list nor a column of strings.
            ValueError: A row is null, a row of a column is not UTF-8, a column's buffers are
                inconsistent, or a text contains a disallowed name.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").count_batch(["hello world", "", "goodbye"])
        [2, 0, 2]
        """
        from .abilities.columns import parts_of

        return self._count_each(
            parts_of(texts),
            num_threads,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
        )

    @overload
    def chunk_spans(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        ids: Literal[False] = False,
        markdown: bool = False,
        allowed_special: Names | None = None,
    ) -> list[ChunkSpan]: ...

    @overload
    def chunk_spans(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        ids: Literal[True],
        markdown: bool = False,
        allowed_special: Names | None = None,
    ) -> list[EncodedChunk]: ...

    def chunk_spans(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        ids: bool = False,
        markdown: bool = False,
        allowed_special: Names | None = None,
    ) -> list[ChunkSpan] | list[EncodedChunk]:
        """Cuts text into chunks of at most `max_tokens` tokens each, preferably between paragraphs.

        A chunk ends after the last paragraph that ends in its second half, or else after the last
        line or sentence there, or else after the last word, or else where `chunk` would cut. Each
        chunk is encoded on its own.

        Args:
            text: The text.
            max_tokens: Maximum number of tokens in a chunk.
            overlap: Maximum number of tokens that a chunk repeats from the end of the previous
                chunk, starting at a sentence or else at a word.
            ids: Return the ids of each chunk instead of the token count.
            markdown: Treat the text as Markdown: a heading that begins with ``#`` stays with the
                next block, and a code fence stays whole, if the chunk has room after its overlap.
            allowed_special: As in `count`.

        Returns:
            For each chunk, the start and end index in characters, and the token count or the ids.
            Without overlap, the chunks join to the text.

        Raises:
            ValueError: As in `chunk`.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> text = "One cat. Two cats.\\n\\nA dog is not a cat."
        >>> spans = gpt2.chunk_spans(text, 8)
        >>> spans[0]
        ChunkSpan(start=0, end=20, tokens=7)
        >>> [text[start:end] for start, end, _ in spans]
        ['One cat. Two cats.\\n\\n', 'A dog is not a cat.']
        >>> gpt2.chunk_spans(text, 8, ids=True)[1]
        EncodedChunk(start=20, end=39, ids=[32, 3290, 318, 407, 257, 3797, 13])
        """
        from .abilities._markdown import Whole
        from .abilities.chunks import chunk_spans, counted, encoded

        max_tokens, overlap = self._chunk_sizes(max_tokens, overlap)
        whole = Whole(text) if truth("markdown", markdown) else None
        cut = partial(chunk_spans, self, text, max_tokens, overlap, allowed_special, whole)
        return cut(encoded) if truth("ids", ids) else cut(counted)

    def show(
        self,
        text: str | Sequence[Segment | tuple[Any, ...]],
        *,
        allowed_special: Names | None = None,
    ) -> ShownTokens:
        """Returns the tokens of a text for display: colored chips in a notebook.

        Hover over a chip for its id, bytes and span.

        Args:
            text: The text; or the segments of a prompt, as `encode_segments` takes them.
            allowed_special: As in `count`. Segments carry their own allowed names.

        >>> import bpe_engine
        >>> bpe_engine.get_encoding("gpt2").show("It isn't 🦜!")
        It|·isn|'t|·🦜|‥|‥|!
        7 tokens, gpt2
        """
        from .abilities.shown import ShownTokens, place_tokens, shown_tokens

        if isinstance(text, str):
            ids, spans = self.encode_with_offsets(
                text, allowed_special=allowed_special, disallowed_special=()
            )
            tokens = self.decode_tokens_bytes(ids)
        else:
            ids = self.encode_segments(text)
            tokens = self.decode_tokens_bytes(ids)
            text, spans = place_tokens(tokens)
        shown = shown_tokens(text, ids, tokens, spans, self._special_ids)
        return ShownTokens(self._label, shown)

    # ---- Decoding ----

    def stream_decoder(
        self,
        errors: str | None = None,
        prompt: int | Sequence[int] = (),
        *,
        skip_special_tokens: bool = False,
    ) -> StreamDecoder:
        """Returns a `StreamDecoder`, for ids that arrive one by one.

        A stream ignores ``clean_up_tokenization_spaces``, which rewrites earlier text.

        Args:
            errors: How to treat bytes that are not UTF-8, as in ``bytes.decode``. By default
                U+FFFD, or `errors` of a `bpe_engine.Tokenizer`.
            prompt: The id or ids before the stream. Their text is not returned.
            skip_special_tokens: Drop special tokens.

        >>> import bpe_engine
        >>> decoder = bpe_engine.get_encoding("gpt2").stream_decoder()
        >>> [decoder.push(id) for id in (162, 254, 117)], decoder.finish()
        (['', '', '根'], '')
        """
        skipped = self._special_ids if skip_special_tokens else ()
        return StreamDecoder(self, errors or self._errors, prompt, skipped)

    # ---- Prompts with trusted and untrusted parts ----

    def encode_segments(
        self,
        segments: Iterable[Segment | tuple[Any, ...]],
        *,
        join: bool = True,
        on_control: OnControl = "encode",
        control: Collection[str] = (),
    ) -> list[int]:
        """Encodes a prompt in which untrusted text never becomes a special token.

        Args:
            segments: Results of ``special``, ``trusted``, ``untrusted``, ``tokens``, `render_chat`
                and `render_template` in `bpe_engine.prompt`; or tuples ``(text, allowed_special)``
                with False, True or an unhashable set of names. Special tokens are searched for in
                each segment separately, before normalization.
            join: Encode neighboring segments of text together: the ids then equal
                ``encode("".join(texts), allowed_special="all")`` if untrusted text is free of
                special tokens' names. Otherwise tokens never cross a segment boundary.
            on_control: How to treat control strings in untrusted text: ``"encode"`` encodes them as
                ordinary text, ``"raise"`` raises ValueError, ``"strip"`` removes them, and a
                function that takes a `ControlString` returns ordinary text to replace it.
                Untrusted neighbors count as one text.
            control: Control strings in addition to the special tokens.

        Raises:
            TypeError, ValueError: A segment is malformed, or holds a control string with
                ``on_control="raise"``; the message names it.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import special, untrusted
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> gpt2.encode_segments([special("<|endoftext|>"), untrusted("hi<|endoftext|>")])
        [50256, 5303, 27, 91, 437, 1659, 5239, 91, 29]
        """
        return encode.encode(self, segments, join, on_control, control)

    def audit_segments(
        self,
        segments: Iterable[Segment | tuple[Any, ...]],
        *,
        join: bool = True,
        control: Collection[str] = (),
    ) -> Audit:
        """Encodes like `encode_segments`, and also returns the origin of each id and the control
        strings in untrusted text: see `Audit`.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import special, untrusted
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> audit = gpt2.audit_segments([special("<|endoftext|>"), untrusted("<|endoftext|>")])
        >>> audit.segments, audit.controls
        ... # doctest: +NORMALIZE_WHITESPACE
        ([0, 1, 1, 1, 1, 1, 1, 1],
         [ControlString(token='<|endoftext|>', segment=1, offset=0)])
        """
        return encode.audit(self, segments, join, control)

    # ---- Bytes ----

    def heal(
        self,
        prompt: str | bytes | bytearray | memoryview | Iterable[Segment | tuple[Any, ...]],
        *,
        allowed_special: Names | None = None,
        disallowed_special: Names = (),
    ) -> Healed:
        """Prepares a prompt that ends inside a word for a model.

        Such a prompt ends with ids that the model has never seen in that position. The result has
        the ids that no continuation changes, and the tokens compatible with the rest: see `Healed`.
        These tokens cover every continuation, except the completion of a special token's name.

        Args:
            prompt: A text; its UTF-8, which may end inside a character; or segments, as
                `encode_segments` takes them. For segments, a file that looks for added tokens in
                normalized text keeps only the ids up to the last control token.
            allowed_special, disallowed_special: As in `encode`. Segments carry their own names.

        Raises:
            UnsupportedTokenizer: The bytes of tokens differ from the text, as under a
                normalizer that lowercases, in a word-level model, or where characters become the
                unknown token.
            ValueError: The bytes are not UTF-8, the text has a disallowed name, or as in
                `TokenTable`.

        >>> import bpe_engine
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> healed = gpt2.heal("https:")
        >>> healed.ids, healed.rest, gpt2.decode(healed.allowed_ids()[-1:].tolist())
        ([5450], b':', ':]')
        """
        from . import _core
        from .abilities.healing import Healed

        if isinstance(prompt, str) and "\ud800" <= prompt[-1:] <= "\udbff":
            # The surrogate may be the first half of a character.
            prompt = prompt[:-1]
        elif isinstance(prompt, (bytearray, memoryview)):
            prompt = bytes(prompt)
        return Healed(_core.Healed(self, prompt, allowed_special, disallowed_special))
