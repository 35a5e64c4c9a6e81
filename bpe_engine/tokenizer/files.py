"""Reads and writes the configuration, special tokens and templates in a tokenizer's folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..common.atomic_write import write_at_once
from ..hf.components import AddedToken
from ..read.sources import CONFIG, existing_folder
from ..read.text_files import read_text

__all__ = [
    "CONFIG",
    "FLAGS",
    "SETTINGS",
    "TOKENIZER",
    "check_stale_files",
    "located",
    "read_config",
    "read_json",
    "settings_of",
    "write_config",
]

TOKENIZER = "tokenizer.json"
#: The flags of an added token in files.
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")

_SPECIAL_TOKENS = "special_tokens_map.json"
_TEMPLATE = "chat_template.jinja"
_MORE_TEMPLATES = "additional_chat_templates"

#: Configuration fields passed to the constructor unchanged.
SETTINGS = (
    "padding_side",
    "truncation_side",
    "model_max_length",
    "model_input_names",
    "errors",
    "split_special_tokens",
    "clean_up_tokenization_spaces",
)


# Arguments of transformers' `from_pretrained` that control downloads or the class.
_IGNORED = frozenset(
    """cache_dir force_download local_files_only proxies resume_download revision token
    trust_remote_code use_auth_token use_fast user_agent""".split()
)


def located(
    folder: str | os.PathLike[str], arguments: Mapping[str, Any]
) -> tuple[Path, dict[str, Any]]:
    """Returns the path of the folder for `from_pretrained`, and the arguments of the constructor.

    Raises:
        FileNotFoundError: The folder does not exist.
    """
    left = {name: value for name, value in arguments.items() if name not in _IGNORED}
    return existing_folder(Path(folder, left.pop("subfolder", None) or "")), left


def check_stale_files(path: Path, chat_template: Any, has_tokenizer_file: bool) -> None:
    """Checks that a folder can be written.

    Args:
        path: The folder.
        chat_template: The template to write, or several templates by name.
        has_tokenizer_file: True if a ``tokenizer.json`` will be written.

    Raises:
        FileExistsError: The folder contains a file of another tokenizer, which would also be read.
    """
    names = {"default"} if isinstance(chat_template, str) else set(chat_template or ())
    stale = [file for file in _template_files(path) if _name_of_template(file) not in names]
    if not has_tokenizer_file and (path / TOKENIZER).is_file():
        stale.insert(0, path / TOKENIZER)
    if stale:
        raise FileExistsError(
            f"{stale[0]} belongs to another tokenizer, and would be read with this one; remove it, "
            "or save into another folder"
        )


def read_json(path: Path) -> dict[str, Any]:
    """Returns the JSON object in a file, or an empty dict if the file does not exist.

    Raises:
        ValueError: The file is not a JSON object.
    """
    if not path.is_file():
        return {}
    try:
        contents = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(contents, dict):
        raise ValueError(f"{path} must hold a JSON object, not a {type(contents).__name__}")
    return contents


# Types of configuration fields.
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("padding_side", "truncation_side", "errors", "tokenizer_class"), (str,)),
    **dict.fromkeys(("model_max_length", "max_len"), (int, float)),
    "model_input_names": (list,),
    "added_tokens_decoder": (dict,),
    "chat_template": (str, list, dict),
    "extra_special_tokens": (list, dict),
    "additional_special_tokens": (list,),
}
_TOKEN_LISTS = ("extra_special_tokens", "additional_special_tokens")


def read_config(path: Path) -> dict[str, Any]:
    """Returns the configuration of a folder, or an empty dict if the file does not exist.

    Raises:
        ValueError: The file is not a JSON object, or a field has the wrong type.
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
    """Returns the constructor's arguments from the files of a folder."""
    given = dict(config)
    if "added_tokens_decoder" not in config:
        given.update(read_json(path / _SPECIAL_TOKENS))
    settings = {name: given[name] for name in SETTINGS if given.get(name) is not None}
    for name in ("add_bos_token", "add_eos_token"):
        if name in given:
            settings[name] = given[name]
    if given.get("max_len") is not None:
        # The name of the field in old files.
        settings.setdefault("model_max_length", given["max_len"])
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
    if not isinstance(value, dict):
        return value
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    given = {flag: bool(value[flag]) for flag in flags if flag in value}
    return AddedToken(str(value.get("content")), special=True, **given)


def _chat_templates(path: Path, config: Mapping[str, Any]) -> Any:
    files = _template_files(path)
    found = {_name_of_template(file): read_text(file) for file in files}
    if list(found) == ["default"]:
        return found["default"]
    return found or config.get("chat_template")


def _template_files(path: Path) -> list[Path]:
    main = path / _TEMPLATE
    return [*([main] if main.is_file() else ()), *sorted((path / _MORE_TEMPLATES).glob("*.jinja"))]


def _name_of_template(file: Path) -> str:
    return "default" if file.name == _TEMPLATE else file.stem


def write_config(path: Path, config: Mapping[str, Any], chat_template: Any) -> list[str]:
    """Writes a configuration, and one template or several by name. Returns the files' paths."""
    text = json.dumps(config, ensure_ascii=False, indent=2) + "\n"
    write_at_once(path / CONFIG, text.encode())
    named = {"default": chat_template} if isinstance(chat_template, str) else chat_template or {}
    written = [os.fspath(path / CONFIG)]
    for name, template in named.items():
        file = path / _TEMPLATE
        if name != "default":
            if not str(name).replace("_", "").replace("-", "").isalnum():
                raise ValueError(f"a template cannot be saved under the name {name!r}")
            file = path / _MORE_TEMPLATES / f"{name}.jinja"
        file.parent.mkdir(exist_ok=True)
        write_at_once(file, template.encode())
        written.append(os.fspath(file))
    return written
