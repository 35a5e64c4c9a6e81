"""Rules about the chat template, and about the tokens added around a text."""

from __future__ import annotations

import re
from collections import Counter

from ....text import few, quoted, shorten
from ...findings import Outcome
from ..folder_rules import FOLDER_RULES
from ..model_folder import ModelFolder
from ..sources import Source
from ..written import has_generation_tags


@FOLDER_RULES.rule("error", "templates that render no conversation", needs=["template"])
def template_broken(folder: ModelFolder) -> Outcome:
    """Every chat request fails, whatever its messages.

    Do: Correct the template; the example has the error and its line.
    """
    error = folder.text.error
    return [] if error is None else [f"{next(iter(folder.templates))}: {shorten(error, 200)}"]


def _becomes(source: Source, text: str) -> list[int]:
    """Returns the ids of a control token's name: one id if the tokenizer knows the token."""
    number = source.find(text)
    return source.encode([text])[0] if number is None else [number]


@FOLDER_RULES.rule(
    "error",
    "control tokens that the template writes and the tokenizer does not know",
    needs=["template", "tokenizer"],
)
def template_token_unknown(folder: ModelFolder) -> Outcome:
    """The template writes the name of a control token, but the model sees several ordinary tokens,
    either everywhere or where the tokenizer does not recognize the name.

    Do: Add the tokens as special tokens with the ids that the model was trained with, or use the
    template of this model.
    """
    found = []
    for control in folder.text.controls:
        ids = _becomes(folder.tokenizer, control)
        if len(ids) != 1:
            found.append(f"{quoted(control)} becomes {len(ids)} tokens: {ids}")
    return found or _lost(folder)


def _lost(folder: ModelFolder) -> list[str]:
    """Returns the control tokens that the tokenizer knows but does not recognize in a rendered
    prompt: some names are recognized only at the start of a text, or next to spaces."""
    controls = sorted(folder.text.controls, key=len, reverse=True)
    source, prompts = folder.tokenizer, folder.text.prompts
    if not controls or not source.finds_special:
        return []
    pattern = re.compile("|".join(map(re.escape, controls)))
    written = Counter(name for prompt in prompts for name in pattern.findall(prompt))
    ids = Counter(id for row in source.encode(prompts) for id in row)
    return [
        f"{quoted(name)} becomes other tokens in {count - ids[number]} of {count} places of "
        f"{len(prompts)} prompts"
        for name, count in sorted(written.items())
        if (number := source.find(name)) is not None and ids[number] < count
    ]


@FOLDER_RULES.rule(
    "warning",
    "tokens that the template writes and the tokenizer adds once more: encode rendered prompts "
    "without special tokens",
    needs=["template", "tokenizer"],
)
def double_bos(folder: ModelFolder) -> Outcome:
    """Both the template and the tokenizer write the token, so the model sees it twice.

    Do: Encode rendered prompts with `add_special_tokens=False`; `apply_chat_template` does.
    """
    found = []
    for source in _policies(folder):
        before, after = source.around or ([], [])
        names = {number: name for name, number in source.special.items()}
        start = "".join(names.get(number, "\0") for number in before)
        end = "".join(names.get(number, "\0") for number in after)
        if start and any(prompt.startswith(start) for prompt in folder.text.prompts):
            found.append(f"{quoted(start)} at the start, by {source.name}")
        if end and any(prompt.rstrip().endswith(end) for prompt in folder.text.prompts):
            found.append(f"{quoted(end)} at the end, by {source.name}")
    return found


def _policies(folder: ModelFolder) -> list[Source]:
    """Returns the sources that define the tokens added around a text."""
    return [source for source in folder.sources if source.around is not None]


@FOLDER_RULES.rule("warning", "different tokens added around a text")
def bos_policy(folder: ModelFolder) -> Outcome:
    """Whether a text begins with BOS depends on the program, and scores depend on it.

    Do: Make `add_bos_token` and `add_eos_token` agree with the post-processor of `tokenizer.json`.
    """
    main = folder.main
    if main is None or main.around is None:
        return []
    names = {number: name for name, number in main.special.items()}

    def shown(ids: list[int]) -> str:
        return " ".join(names.get(number, str(number)) for number in ids) or "nothing"

    found = []
    for source in _policies(folder)[1:]:
        for ids, others, where in zip(main.around, source.around or (), ("before", "after")):
            if ids != others:
                found.append(
                    f"{where} a text: {shown(ids)} by {main.name}, {shown(others)} by {source.name}"
                )
    config = folder.json("tokenizer_config.json")
    for key, role, ids in (
        ("add_bos_token", "bos_token", main.around[0]),
        ("add_eos_token", "eos_token", main.around[1]),
    ):
        token = folder.role(role)
        number = None if token is None else main.find(token)
        if type(config.get(key)) is bool and number is not None and config[key] != (number in ids):
            adds = "adds" if number in ids else "does not add"
            value = str(config[key]).lower()
            found.append(f"{key} is {value}, and {main.name} {adds} {quoted(str(token))}")
    return found


@FOLDER_RULES.rule(
    "warning",
    "tokens that end an assistant's turn and no config names as the end: generation would go on",
    needs=["template", "tokenizer"],
)
def turn_end_not_stop(folder: ModelFolder) -> Outcome:
    """The model ends its turn, but the server lets it continue with the user's next turn.

    Do: Add the id to `eos_token_id` in `generation_config.json`.
    """
    end = (folder.text.turn_end or "").strip()
    names = [name for name in folder.tokenizer.special if end.startswith(name)]
    stops = {id for ids in folder.model_ids("eos_token").values() for id in ids}
    eos = folder.role("eos_token")
    if eos is not None and (number := folder.tokenizer.find(eos)) is not None:
        stops.add(number)
    if not names or not stops:
        return []
    name = max(names, key=len)
    number = folder.tokenizer.special[name]
    if number in stops:
        return []
    return [f"{quoted(name)} ({number}); the ids of eos_token are {sorted(stops)}"]


@FOLDER_RULES.rule("warning", "files whose chat templates differ; the first one counts")
def templates_differ(folder: ModelFolder) -> Outcome:
    """Servers read different files, so they render different prompts.

    Do: Keep one template; `chat_template.jinja` counts first.
    """
    (first, text), *others = [*folder.templates.items()] or [("", "")]
    return [f"{first} and {name}" for name, other in others if other.strip() != text.strip()]


@FOLDER_RULES.rule(
    "warning",
    "pairs of tags of which one is a token and the other ordinary text",
    needs=["template", "tokenizer"],
)
def half_a_tag(folder: ModelFolder) -> Outcome:
    """One tag is a token and its partner is text, so parsers of reasoning or calls miss a tag.

    Do: Add the other tag as a token, if the model was trained so.
    """
    tags = folder.text.tags
    found = []
    for tag in tags:
        closing = re.sub(r"^([<\[])", r"\1/", tag)
        if tag[1] == "/" or closing not in tags:
            continue
        one, two = _becomes(folder.tokenizer, tag), _becomes(folder.tokenizer, closing)
        if (len(one) == 1) != (len(two) == 1):
            found.append(f"{quoted(tag)} is {one}, and {quoted(closing)} is {two}")
    return found


@FOLDER_RULES.rule(
    "info",
    "tags that the template writes and that are ordinary text to the tokenizer",
    needs=["template", "tokenizer"],
)
def tags_as_text(folder: ModelFolder) -> Outcome:
    """These tags are several ordinary tokens, so users' text can contain them.

    Do: Nothing if the model was trained so. Pass them as `control` to find them in untrusted text.
    """
    return [tag for tag in folder.text.tags if len(_becomes(folder.tokenizer, tag)) != 1]


@FOLDER_RULES.rule(
    "info",
    "templates without {% generation %}: transformers' assistant masks are all zero",
    needs=["template"],
)
def no_generation_tag(folder: ModelFolder) -> Outcome:
    """transformers makes assistant masks from these tags; without the tags its masks are all zero.

    Do: Use the masks of this package, which need no tags: see docs/fine-tuning.md.
    """
    template = folder.template or ""
    names = few(list(folder.templates), 1)
    return [] if has_generation_tags(template) else [names]
