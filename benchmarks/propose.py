"""Measures the tokens that proposed words save, for each 1,000 new ids.

    python -m benchmarks.propose
    python -m benchmarks.propose --text Thai=thai.txt --text Hindi=hindi.txt

For each text and base, words are proposed from the odd blocks of lines of the text, learned, and
measured on the even ones. A row has the tokens of the measured half for 1,000 bytes, without and
with the new tokens, the share that is saved, and how many tokens that is for each 1,000 new ids. The
last column is the share that training on from the base saves with the number of new tokens
(`vocab-tools train --base`). Without --text, the corpora of the other benchmarks are taken.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import vocab_tools
from benchmarks.cases.corpora import find_corpora

ROOT = Path(__file__).resolve().parent.parent

#: Lines are taken in blocks of so many: neighbors belong together.
LINES = 50


def halves(text: str) -> tuple[str, str]:
    """Returns the odd and the even blocks of lines."""
    lines = text.splitlines(keepends=True)
    blocks = ["".join(lines[start : start + LINES]) for start in range(0, len(lines), LINES)]
    return "".join(blocks[::2]), "".join(blocks[1::2])


def measured(name: str, text: str, base: str, new_ids: int, folder: Path) -> list[str]:
    """Returns the cells of the row for a text and a base."""
    ranks = vocab_tools.load_ranks(ROOT / "data" / f"{base}.tiktoken")
    chosen_from, measured_on = folder / "chosen_from.txt", folder / "measured_on.txt"
    for path, half in zip((chosen_from, measured_on), halves(text)):
        path.write_text(half, encoding="utf-8")
    proposal = vocab_tools.propose_words(ranks, [chosen_from], new_ids)
    result = vocab_tools.learn_merges(ranks, proposal.frequencies)
    effect = vocab_tools.corpus_effect(
        measured_on,
        result.pattern.encoding(ranks, {}),
        result.pattern.encoding(result.extended, {}),
        [path.word for path in result.words],
        nfc=result.pattern.nfc,
    )
    trained = vocab_tools.train_vocabulary(
        chosen_from,
        len(ranks) + len(result.pattern.special_tokens) + len(result.tokens),
        base=ranks,
    )
    text = measured_on.read_text(encoding="utf-8")
    with_trained = len(trained.encoding().encode_ordinary(text))
    size = measured_on.stat().st_size
    saved = effect.tokens_before - effect.tokens_after
    return [
        name,
        base,
        f"{size / 1e6:.2f}",
        f"{len(result.words):,}",
        f"{len(result.tokens):,}",
        f"{1000 * effect.tokens_before / size:.0f}",
        f"{1000 * effect.tokens_after / size:.0f}",
        f"{saved / effect.tokens_before:.1%}",
        f"{saved / len(result.tokens) * 1000:,.0f}" if result.tokens else "",
        f"{1 - with_trained / effect.tokens_before:.1%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--corpora", type=Path, metavar="DIR", help="the *.txt of a folder")
    parser.add_argument("--base", nargs="*", default=["qwen", "cl100k_base"])
    parser.add_argument("-n", type=int, nargs="*", default=[1000, 4000])
    options = parser.parse_args()
    texts = {}
    for option in options.text:
        name, _, path = option.partition("=")
        texts[name] = Path(path).read_text(encoding="utf-8")
    if not texts:
        cache = Path(tempfile.gettempdir()) / "bpe-engine-corpora"
        cache.mkdir(exist_ok=True)
        corpora = find_corpora(options.corpora, cache)
        texts = {corpus.name: corpus.path.read_text(encoding="utf-8") for corpus in corpora}
    print(
        "| text | base | measured, MB | words | new ids | tokens per 1,000 bytes before | after "
        "| saved | tokens saved per 1,000 ids | saved by training on |"
    )
    print("| --- | --- |" + " ---: |" * 8)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            for base in options.base:
                for count in options.n:
                    row = measured(name, text, base, count, Path(folder))
                    print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
