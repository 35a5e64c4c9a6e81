"""`SpecialTokens`: a tokenizer's special tokens by role, such as ``pad_token``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..common.values import checked
from ..hf.components import AddedToken

__all__ = ["EXTRA", "ROLES", "SpecialTokens", "content_of", "plain_token"]

#: Roles that every tokenizer has.
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")

#: Attribute with the tokens that have no role.
EXTRA = "extra_special_tokens"


def content_of(token: Any) -> str:
    """Returns the text of a ``str``, or of an ``AddedToken`` of this package or `tokenizers`."""
    content = getattr(token, "content", token)
    if not isinstance(content, str):
        raise TypeError(f"a special token is a str or an AddedToken, not {type(token).__name__}")
    return content


class SpecialTokens:
    """A tokenizer's special tokens: by role, and extra tokens without a role.

    Args:
        roles: Tokens by the names of their attributes, such as ``pad_token``.
        extra: A list of more tokens, or a dict of attribute names and tokens.
        reserved: Returns True for the names of the tokenizer's attributes.
        check: Raises ValueError if a token must not have a role.

    Raises:
        TypeError, ValueError: A name or a token is not as described.
    """

    def __init__(
        self,
        roles: Mapping[str, Any],
        extra: Any,
        reserved: Callable[[str], bool],
        check: Callable[[str, str], None],
    ):
        self._reserved, self._check = reserved, check
        given: dict[str, Any] = dict.fromkeys(ROLES)
        unknown = [name for name in roles if name not in ROLES and not name.endswith("_token")]
        if unknown:
            raise TypeError(f"a Tokenizer has no argument {unknown[0]!r}")
        given.update(roles)
        listed: list[Any] = []
        if isinstance(extra, Mapping):
            for name in extra:
                self._check_attribute(name)
            given.update(extra)
        elif isinstance(extra, (list, tuple)):
            listed = list(extra)
        elif extra is not None:
            raise TypeError(
                "extra_special_tokens must be a list of tokens or a dict of names and tokens, not "
                f"{type(extra).__name__}"
            )
        self.roles: dict[str, str | None] = {
            name: None if token is None else content_of(token) for name, token in given.items()
        }
        self.extra: list[str] = [content_of(token) for token in listed]
        #: The tokens as given, with their flags.
        self.given: list[AddedToken] = [
            plain_token(token, True) for token in (*given.values(), *listed) if token is not None
        ]
        for name, token in self.named().items():
            check(name, token)

    def copied(self, check: Callable[[str, str], None]) -> SpecialTokens:
        """Returns a copy for another tokenizer of the same class."""
        other = copy.copy(self)
        other.roles, other.extra, other._check = dict(self.roles), list(self.extra), check
        return other

    def named(self) -> dict[str, str]:
        """Returns the tokens that have a role, by the role's name."""
        return {name: token for name, token in self.roles.items() if token is not None}

    def all(self) -> list[str]:
        """Returns every token once, tokens with a role first."""
        return list(dict.fromkeys([*self.named().values(), *self.extra]))

    def set_role(self, name: str, token: Any) -> None:
        """Sets the token of a role; None removes it."""
        content = None if token is None else content_of(token)
        if content is not None:
            self._check(name, content)
        self.roles[name] = content

    def set_extra(self, tokens: Any) -> None:
        """Sets the tokens that have no role."""
        if isinstance(tokens, str) or not isinstance(tokens, Iterable):
            raise TypeError(f"{EXTRA} must be a list of tokens, not {type(tokens).__name__}")
        contents = [content_of(token) for token in checked(tokens)]
        for content in contents:
            self._check(EXTRA, content)
        self.extra = contents

    def update(
        self, tokens: Mapping[str, Any], replace_extra: bool, add: Callable[[list[AddedToken]], int]
    ) -> int:
        """Sets several tokens: see `Tokenizer.add_special_tokens`."""
        if not isinstance(tokens, Mapping):
            raise TypeError(f"a dict of names and tokens is needed, not {type(tokens).__name__}")
        given = dict(tokens)
        if "additional_special_tokens" in given:
            given.setdefault(EXTRA, given.pop("additional_special_tokens"))
        extra = given.pop(EXTRA, ())
        if isinstance(extra, Mapping):
            given.update(extra)
            extra = ()
        for name, token in given.items():
            if name not in self.roles:
                if not (isinstance(name, str) and name.endswith("_token")):
                    raise ValueError(
                        f"Key {name} is not a valid special token. Valid keys are: "
                        f"{sorted([*self.roles, EXTRA])}, and new names that end with _token"
                    )
                self._check_attribute(name)
            self._check(name, content_of(token))
        if not isinstance(extra, (list, tuple)):
            raise TypeError(f"{EXTRA} must be a list of tokens, not {type(extra).__name__}")
        for token in extra:
            self._check(EXTRA, content_of(token))
        if not given and not extra:
            return 0
        count = add([plain_token(token, True) for token in (*given.values(), *extra)])
        self.roles.update({name: content_of(token) for name, token in given.items()})
        if extra:
            kept = [] if replace_extra else self.extra
            self.extra = list(dict.fromkeys([*kept, *map(content_of, extra)]))
        return count

    def _check_attribute(self, name: str) -> None:
        if not (isinstance(name, str) and name.isidentifier()) or name.startswith("_"):
            raise ValueError(f"{name!r} cannot be the name of a special token; take a plain word")
        if self._reserved(name):
            raise ValueError(f"a Tokenizer has {name!r} already; take another name")


def plain_token(token: Any, is_special: bool) -> AddedToken:
    """Returns a token as an `AddedToken`, special if the token or `is_special` says so."""
    if isinstance(token, str):
        return AddedToken(token, special=is_special)
    flags = {flag: bool(getattr(token, flag)) for flag in ("single_word", "lstrip", "rstrip")}
    is_special = is_special or bool(token.special)
    return AddedToken(content_of(token), **flags, normalized=token.normalized, special=is_special)
