"""Reads our token files with the loaders of others, and compares the ids with those of `encode`.

    python -m benchmarks.corpus_readers --texts FOLDER --tokenizer gpt2.json --checkouts FOLDER [--mb 8]

CHECKOUTS holds clones of Megatron-LM, OLMo-core, nanoGPT and llm.c; their code is run, not copied.
datatrove is the installed package, all but llm.c need torch, and Megatron-LM's scripts transformers.
A side that cannot run says why. The exit status is 1 if any ids differ.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bpe_engine import get_encoding
from bpe_engine.corpus import make_plan, merge_parts, run_plan

from .corpus import documents

WINDOW = 512


class Corpus:
    """Documents as JSON lines, and their ids."""

    def __init__(self, folder: Path, texts: Sequence[str], tokenizer: str, encoding: str):
        self.folder, self.tokenizer, self.encoding = folder, tokenizer, get_encoding(encoding)
        self.texts, self.eod = texts, self.encoding.eot_token
        self.source = folder / "in.jsonl"
        lines = (json.dumps({"text": text}, ensure_ascii=False) for text in texts)
        self.source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        self.rows = [[*self.encoding.encode_ordinary(text), self.eod] for text in texts]
        self.flat = np.array([id for row in self.rows for id in row])

    def written(self, form: str, *, merged: bool = True, **options: Any) -> Path:
        """Writes the corpus. Returns the folder of its files."""
        out = self.folder / f"{form}-{self.encoding.name}"
        options = {"format": form, "unit_bytes": self.source.stat().st_size // 5 + 1, **options}
        plan = make_plan([self.source], self.encoding.name, out, **options)
        run_plan(plan, processes=1)
        if merged:
            merge_parts(plan)
        return out if merged else out / "parts"

    @property
    def title(self) -> str:
        """The size of the corpus in words."""
        return f"{len(self.rows):,} documents, {len(self.flat):,} ids of {self.encoding.name}"


def megatron_dataset(corpus: Corpus, checkouts: Path) -> None:
    """Reads with IndexedDataset of Megatron-Core, mapped and from the file."""
    sys.path.insert(0, str(checkouts / "Megatron-LM"))
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    prefix = str(corpus.written("megatron") / "corpus_text_document")
    for mmap in (True, False):
        found = IndexedDataset(prefix, mmap=mmap)
        assert found.document_indices.tolist() == list(range(len(corpus.rows) + 1))
        assert [found[at].tolist() for at in range(len(found))] == corpus.rows


def _megatron_script(corpus: Corpus, checkouts: Path, script: str, *arguments: str) -> None:
    model = corpus.folder / "model"
    model.mkdir(exist_ok=True)
    (model / "tokenizer.json").write_bytes(Path(corpus.tokenizer).read_bytes())
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    (model / "tokenizer_config.json").write_text(json.dumps(config))
    root = checkouts / "Megatron-LM"
    theirs = corpus.folder / script
    kind = ["--tokenizer-model", str(model), "--append-eod"]
    command = [sys.executable, root / "tools" / script, "--input", corpus.source, *kind]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    result = subprocess.run(
        [*command, "--output-prefix", theirs, *arguments],
        capture_output=True,
        text=True,
        env=environment,
    )
    if result.returncode:
        raise RuntimeError(result.stderr.strip().splitlines()[-1])
    ours = corpus.written("megatron")
    for ending in ("bin", "idx"):
        other = Path(f"{theirs}_text_document.{ending}").read_bytes()
        assert (ours / f"corpus_text_document.{ending}").read_bytes() == other, ending


def megatron_script(corpus: Corpus, checkouts: Path) -> None:
    """Compares the bytes with those of Megatron-LM's preprocess_data.py and `tokenizers`."""
    kind = ("--tokenizer-type", "HuggingFaceTokenizer", "--workers", "1")
    _megatron_script(corpus, checkouts, "preprocess_data.py", *kind)


def megatron_fast_script(corpus: Corpus, checkouts: Path) -> None:
    """Compares the bytes with those of Megatron-LM's preprocess_data_fast.py and gigatoken."""
    kind = ("--tokenizer-type", "HuggingFaceTokenizer", "--use-gigatoken")
    _megatron_script(corpus, checkouts, "preprocess_data_fast.py", *kind)


def datatrove_dataset(corpus: Corpus, checkouts: Path) -> None:
    """Reads windows and positions with DatatroveFolderDataset."""
    from datatrove.utils.dataset import DatatroveFolderDataset

    folder = corpus.written("datatrove")
    width = 2 if corpus.encoding.max_token_value < 1 << 16 else 4
    found = DatatroveFolderDataset(
        str(folder), WINDOW - 1, "*.ds", token_size=width, return_positions=True
    )
    count = len(corpus.flat) // WINDOW
    assert len(found) == count > 10
    position = np.concatenate([np.arange(len(row)) for row in corpus.rows])
    starts = np.arange(count * WINDOW) % WINDOW
    for at in range(count):
        some = slice(at * WINDOW, (at + 1) * WINDOW)
        window = found[at]
        assert window["input_ids"].tolist() == corpus.flat[some].tolist(), at
        wanted = np.minimum(position[some], starts[some])  # They begin again with a window.
        assert window["positions"].tolist() == wanted.tolist(), at


def olmo_dataset(corpus: Corpus, checkouts: Path) -> None:
    """Reads windows and documents with OLMo-core, the latter from ids and from the index."""
    sys.path.insert(0, str(checkouts / "OLMo-core" / "src"))
    from olmo_core.data.numpy_dataset import NumpyFSLDataset
    from olmo_core.data.utils import iter_document_indices

    folder = corpus.written("olmo", merged=False)
    paths = sorted(folder.glob("*.npy"))
    kind: Any = np.uint16 if corpus.encoding.max_token_value < 1 << 16 else np.uint32
    rows: dict[bool, list[list[int]]] = {True: [], False: []}
    flat = []
    for path in paths:
        ids = np.memmap(path, kind, "r")
        for by_ids, found in rows.items():
            places = iter_document_indices(
                str(path), use_array_if_local=by_ids, eos_token_id=corpus.eod, dtype=kind
            )
            found += [ids[first:last].tolist() for first, last in places]
        flat.append(ids[: len(ids) // WINDOW * WINDOW])
    assert rows[True] == rows[False] == corpus.rows
    dataset = NumpyFSLDataset(
        *map(str, paths),
        sequence_length=WINDOW,
        pad_token_id=corpus.eod,
        eos_token_id=corpus.eod,
        vocab_size=corpus.encoding.n_vocab,
        dtype=kind,
    )
    dataset.prepare()
    found = np.concatenate([dataset[at]["input_ids"].numpy() for at in range(len(dataset))])
    assert len(dataset) > 10 and (found == np.concatenate(flat)).all()


def _definition(path: Path, name: str, names: dict[str, Any]) -> Any:
    """Runs the definition of a function or class of a script, and returns it."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if getattr(node, "name", None) == name:
            exec(compile(ast.Module([node], []), str(path), "exec"), names)
            return names[name]
    raise RuntimeError(f"{path} has no {name}")


def nanogpt_loader(corpus: Corpus, checkouts: Path) -> None:
    """Draws batches with get_batch of nanoGPT's train.py."""
    import torch

    folder = corpus.written("nanogpt")
    names: dict[str, Any] = {"np": np, "os": os, "torch": torch, "data_dir": str(folder)}
    names |= {"block_size": WINDOW, "batch_size": 64, "device_type": "cpu", "device": "cpu"}
    get_batch = _definition(checkouts / "nanoGPT" / "train.py", "get_batch", names)
    windows = np.lib.stride_tricks.sliding_window_view(corpus.flat, WINDOW)
    starts = torch.randint(len(corpus.flat) - WINDOW, (64,), generator=torch.manual_seed(0))
    torch.manual_seed(0)
    inputs, targets = get_batch("train")
    assert (inputs.numpy() == windows[starts]).all()
    assert (targets.numpy() == windows[starts + 1]).all()


_PROGRAM = """
#include <unistd.h>
#include "llmc/dataloader.h"
int main(int argc, char **argv) {
    DataLoader loader;
    dataloader_init(&loader, argv[1], 1, WINDOW, 0, 1, 0);
    for (int i = 0; i < atoi(argv[2]); i++) {
        dataloader_next_batch(&loader);
        fwrite(loader.inputs, sizeof(int), WINDOW, stdout);
        fwrite(loader.targets, sizeof(int), WINDOW, stdout);
    }
    dataloader_free(&loader);
    return 0;
}
"""


def llmc_loaders(corpus: Corpus, checkouts: Path) -> None:
    """Reads shards with the loader of train_gpt2.py, and batches with that of dataloader.h."""
    folder = corpus.written("llm.c", merged=False)
    shards = sorted(folder.glob("*_train_*.bin"))
    load = _definition(checkouts / "llm.c" / "train_gpt2.py", "_load_data_shard", {"np": np})
    parts = [load(shard) for shard in shards]
    # EOD comes first here.
    assert (np.concatenate(parts) == np.concatenate([[corpus.eod], corpus.flat[:-1]])).all()
    program = corpus.folder / "program.c"
    program.write_text(_PROGRAM.replace("WINDOW", str(WINDOW)))
    binary = corpus.folder / "program"
    include = f"-I{checkouts / 'llm.c'}"
    subprocess.run(["cc", "-O2", include, program, "-o", binary, "-lm"], check=True)
    batches = [(len(part) - 1) // WINDOW for part in parts]
    command = [binary, folder / "*_train_*.bin", str(sum(batches))]
    data = subprocess.run(command, check=True, capture_output=True).stdout
    numbers = np.frombuffer(data[-sum(batches) * WINDOW * 8 :], np.int32).reshape(-1, 2, WINDOW)
    wanted = np.concatenate(
        [
            np.stack(
                [part[offset : offset + many * WINDOW].reshape(-1, WINDOW) for offset in (0, 1)], 1
            )
            for part, many in zip(parts, batches)
        ]
    )
    assert len(parts) > 2 and (numbers == wanted).all()


#: Readers, and whether they take ids of 32 bits.
READERS: list[tuple[str, Callable[[Corpus, Path], None], bool]] = [
    ("Megatron-Core, IndexedDataset", megatron_dataset, True),
    ("Megatron-LM, preprocess_data.py", megatron_script, False),
    ("Megatron-LM, preprocess_data_fast.py", megatron_fast_script, False),
    ("datatrove, DatatroveFolderDataset", datatrove_dataset, True),
    ("OLMo-core, NumpyFSLDataset", olmo_dataset, True),
    ("nanoGPT, get_batch", nanogpt_loader, False),
    ("llm.c, train_gpt2.py and dataloader.h", llmc_loaders, False),
]


def main() -> int:
    """Prints a line for each reader."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--tokenizer", required=True, help="gpt2 as a tokenizer.json")
    parser.add_argument("--checkouts", type=Path, required=True)
    parser.add_argument("--mb", type=int, default=8)
    parser.add_argument("--only", default="", help="readers whose names have this")
    arguments = parser.parse_args()
    plain = list(documents(arguments.texts, arguments.mb << 20))
    # Tokenizers of others find control strings in text, and leave empty documents out.
    hostile = ["", *(f"<|endoftext|>{text}" for text in plain[:50]), *plain[50:], ""]
    is_wrong = False
    for title, read, takes_wide in READERS:
        if arguments.only.lower() not in title.lower():
            continue
        for encoding in ("gpt2", "o200k_base")[: 1 + takes_wide]:
            with tempfile.TemporaryDirectory() as scratch:
                texts = plain if "preprocess" in title else hostile
                corpus = Corpus(Path(scratch), texts, arguments.tokenizer, encoding)
                try:
                    read(corpus, arguments.checkouts)
                    said = "the same ids"
                except AssertionError as error:
                    said, is_wrong = f"OTHER ids: {error}", True
                except Exception as error:
                    said = f"cannot run: {type(error).__name__}: {error}"
            print(f"{title}: {said} ({corpus.title})", flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
