"""The files of a folder that say how a tokenizer is used: configuration, special tokens, templates."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..hf.components import AddedToken
from .options import NO_LIMIT

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

__all__ = [
    "CONFIG",
    "FLAGS",
    "TOKENIZER",
    "check_stale_files",
    "existing_folder",
    "located",
    "read_config",
    "read_json",
    "settings_of",
    "write_config",
]

CONFIG = "tokenizer_config.json"
TOKENIZER = "tokenizer.json"
#: The flags of an added token, as files name them.
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")

_SPECIAL_TOKENS = "special_tokens_map.json"
_TEMPLATE = "chat_template.jinja"
_MORE_TEMPLATES = "additional_chat_templates"

# What a constructor takes as it stands in a configuration.
_SETTINGS = (
    "padding_side",
    "truncation_side",
    "model_max_length",
    "model_input_names",
    "errors",
    "split_special_tokens",
)


def existing_folder(folder: str | os.PathLike[str]) -> Path:
    """The path of a folder. FileNotFoundError if it is none."""
    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(
            f"{os.fspath(folder)!r} is no folder on this machine; download the tokenizer first, as "
            "with huggingface_hub.snapshot_download"
        )
    return path


# Arguments of transformers' `from_pretrained` that say how files are fetched, or which class is made.
_OF_NO_EFFECT = frozenset(
    """cache_dir force_download local_files_only proxies resume_download revision token
    trust_remote_code use_auth_token use_fast user_agent""".split()
)


def located(
    folder: str | os.PathLike[str], arguments: Mapping[str, Any]
) -> tuple[Path, dict[str, Any]]:
    """The folder that the arguments of `from_pretrained` mean, and those that are left for a
    constructor.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    left = {name: value for name, value in arguments.items() if name not in _OF_NO_EFFECT}
    return existing_folder(Path(folder, left.pop("subfolder", None) or "")), left


def check_stale_files(tokenizer: Tokenizer, path: Path, has_tokenizer_file: bool) -> None:
    """Raises FileExistsError if the folder holds a file that would be read along with those that
    are to be written, or in their place."""
    template = tokenizer.chat_template
    names = {"default"} if isinstance(template, str) else set(template or ())
    stale = [file for file in _template_files(path) if _name_of_template(file) not in names]
    if not has_tokenizer_file and (path / TOKENIZER).is_file():
        stale.insert(0, path / TOKENIZER)
    if stale:
        raise FileExistsError(
            f"{stale[0]} is of another tokenizer, and would be read as a part of this one; remove "
            "it, or save into another folder"
        )


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; an empty one if there is no such file.

    Raises:
        ValueError: It is no JSON object.
    """
    if not path.is_file():
        return {}
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
    if not isinstance(contents, dict):
        raise ValueError(f"{path} must hold a JSON object, not a {type(contents).__name__}")
    return contents


# What a configuration holds under a name, where it holds it.
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("padding_side", "truncation_side", "errors", "tokenizer_class"), (str,)),
    "model_max_length": (int, float),
    "model_input_names": (list,),
    "added_tokens_decoder": (dict,),
    "chat_template": (str, list, dict),
    "extra_special_tokens": (list, dict),
    "additional_special_tokens": (list,),
}
_TOKEN_LISTS = ("extra_special_tokens", "additional_special_tokens")


def read_config(path: Path) -> dict[str, Any]:
    """The configuration of a folder; an empty one if it has none.

    Raises:
        ValueError: It is no JSON object, or something in it is not of its kind.
    """
    file = path / CONFIG
    config = read_json(file)

    def check(name: str, value: Any, *kinds: type) -> None:
        if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{file}: {name} must be {names}, not {type(value).__name__}")

    for name, kinds in _KINDS.items():
        check(name, config.get(name), *kinds)
    for name in _TOKEN_LISTS:
        for token in config.get(name) or ():
            check(f"a token in {name}", token, str, dict)
    for name in config.get("model_input_names") or ():
        check("a name in model_input_names", name, str)
    if isinstance(templates := config.get("chat_template"), list):
        for entry in templates:
            check("an item of chat_template", entry, dict)
            if not {"name", "template"} <= set(entry):
                raise ValueError(f"{file}: an item of chat_template needs a name and a template")
    for id, token in (config.get("added_tokens_decoder") or {}).items():
        check(f"token {id} of added_tokens_decoder", token, dict)
        if not (id.isdecimal() and isinstance((token or {}).get("content"), str)):
            raise ValueError(
                f"{file}: token {id} of added_tokens_decoder needs an id and its content, a str"
            )
    return config


def settings_of(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor that the files of a folder give."""
    given = dict(config)
    if "added_tokens_decoder" not in config:
        given.update(read_json(path / _SPECIAL_TOKENS))
    settings = {name: given[name] for name in _SETTINGS if given.get(name) is not None}
    for name in ("add_bos_token", "add_eos_token"):
        if name in given:
            settings[name] = given[name]
    extra = given.get("extra_special_tokens") or given.get("additional_special_tokens")
    if isinstance(extra, list):
        settings["extra_special_tokens"] = [_token(token) for token in extra]
    elif isinstance(extra, dict):
        given.update(extra)
    for name, value in given.items():
        if name.endswith("_token") and isinstance(value, (str, dict)):
            settings[name] = _token(value)
    if templates := _chat_templates(path, given):
        settings["chat_template"] = templates
    return settings


def _token(value: Any) -> Any:
    """A token, which files write as a text or as an object with flags."""
    if not isinstance(value, dict):
        return value
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    given = {flag: bool(value[flag]) for flag in flags if flag in value}
    return AddedToken(str(value.get("content")), special=True, **given)


def _chat_templates(path: Path, config: Mapping[str, Any]) -> Any:
    """The template, or several by name; files come before the configuration."""
    files = _template_files(path)
    found = {_name_of_template(file): file.read_text(encoding="utf-8") for file in files}
    if list(found) == ["default"]:
        return found["default"]
    return found or config.get("chat_template")


def _template_files(path: Path) -> list[Path]:
    main = path / _TEMPLATE
    return [*([main] if main.is_file() else ()), *sorted((path / _MORE_TEMPLATES).glob("*.jinja"))]


def _name_of_template(file: Path) -> str:
    return "default" if file.name == _TEMPLATE else file.stem


def write_config(tokenizer: Tokenizer, path: Path, more: Mapping[str, Any]) -> list[str]:
    """Writes the configuration of a tokenizer, with `more` in it, and its templates. Returns their
    paths."""
    config: dict[str, Any] = {
        **more,
        "added_tokens_decoder": {
            str(id): {"content": token.content, **{flag: getattr(token, flag) for flag in FLAGS}}
            for id, token in tokenizer.added_tokens_decoder.items()
        },
        **{name: getattr(tokenizer, name) for name in _SETTINGS},
        **tokenizer.special_tokens_map,
        "extra_special_tokens": tokenizer.extra_special_tokens,
        "add_bos_token": tokenizer.add_bos_token,
        "add_eos_token": tokenizer.add_eos_token,
    }
    if config["model_max_length"] >= NO_LIMIT:
        del config["model_max_length"]
    text = json.dumps(config, ensure_ascii=False, indent=2) + "\n"
    (path / CONFIG).write_text(text, encoding="utf-8")
    return [os.fspath(path / CONFIG), *_save_templates(tokenizer.chat_template, path)]


def _save_templates(templates: Any, path: Path) -> list[str]:
    named = {"default": templates} if isinstance(templates, str) else dict(templates or {})
    written = []
    for name, template in named.items():
        file = path / _TEMPLATE
        if name != "default":
            if not str(name).replace("_", "").replace("-", "").isalnum():
                raise ValueError(f"a template cannot be saved under the name {name!r}")
            file = path / _MORE_TEMPLATES / f"{name}.jinja"
        file.parent.mkdir(exist_ok=True)
        file.write_text(template, encoding="utf-8")
        written.append(os.fspath(file))
    return written
