"""Special tokens by the part they play: ``pad_token``, ``bos_token`` and the like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..hf.components import AddedToken
from .backend import Backend

__all__ = ["ROLES", "SpecialTokens", "content_of", "plain_token"]

#: The parts that every tokenizer knows.
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")

_EXTRA = "extra_special_tokens"


def content_of(token: Any) -> str:
    """The text of a token that is a ``str`` or an ``AddedToken`` of this package or of
    `tokenizers`."""
    content = getattr(token, "content", token)
    if not isinstance(content, str):
        raise TypeError(f"a special token is a str or an AddedToken, not {type(token).__name__}")
    return content


class SpecialTokens:
    """The special tokens of a tokenizer as attributes.

    ``tokenizer.pad_token`` is a name or None, ``tokenizer.pad_token_id`` its id; both can be set.
    Named extras are attributes in the same way: ``tokenizer.image_token``.
    """

    _backend: Backend
    _roles: dict[str, str | None]
    _extra: list[str]

    def _init_special(self, roles: Mapping[str, Any], extra: Any) -> list[AddedToken]:
        """Takes the special tokens of a constructor, and returns those that are to be added."""
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
        tokens = [token for token in (*given.values(), *listed) if token is not None]
        object.__setattr__(
            self,
            "_roles",
            {name: None if token is None else content_of(token) for name, token in given.items()},
        )
        object.__setattr__(self, "_extra", [content_of(token) for token in listed])
        return [_special(token) for token in tokens]

    def _check_attribute(self, name: str) -> None:
        if not (isinstance(name, str) and name.isidentifier()) or name.startswith("_"):
            raise ValueError(f"{name!r} cannot be the name of a special token; take a plain word")
        if hasattr(type(self), name):
            raise ValueError(f"a Tokenizer has {name!r} already; take another name")

    def _check_token(self, name: str, token: str) -> None:
        """Raises ValueError if this may not be the token of that name."""

    def __getattr__(self, name: str) -> Any:
        roles = self.__dict__.get("_roles", {})
        if name in roles:
            return roles[name]
        if name == _EXTRA:
            return list(self.__dict__.get("_extra", ()))
        role = name.removesuffix("_id")
        if role != name and role in roles:
            token = roles[role]
            return None if token is None else self._backend.token_to_id(token)
        if name == f"{_EXTRA}_ids":
            return [self._backend.token_to_id(token) for token in self._extra]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        roles = self.__dict__.get("_roles", {})
        role = name.removesuffix("_id")
        if role in roles:
            if role != name and value is not None:
                value = self._name_of(value)
            token = None if value is None else content_of(value)
            if token is not None:
                self._check_token(role, token)
            roles[role] = token
        elif name == _EXTRA:
            if isinstance(value, str) or not isinstance(value, Iterable):
                raise TypeError(f"{_EXTRA} must be a list of tokens, not {type(value).__name__}")
            tokens = [content_of(token) for token in value]
            for token in tokens:
                self._check_token(name, token)
            object.__setattr__(self, "_extra", tokens)
        else:
            object.__setattr__(self, name, value)

    def _name_of(self, id: int) -> str:
        token = self._backend.id_to_token(id)
        if not isinstance(token, str):
            raise ValueError(f"{id} is the id of no special token")
        return token

    @property
    def SPECIAL_TOKENS_ATTRIBUTES(self) -> list[str]:
        """The names of the attributes, named extras among them."""
        return list(self._roles)

    @property
    def special_tokens_map(self) -> dict[str, str]:
        """The named special tokens that are set."""
        return {name: token for name, token in self._roles.items() if token is not None}

    @property
    def all_special_tokens(self) -> list[str]:
        """The special tokens that are set, named ones first, each once."""
        return list(dict.fromkeys([*self.special_tokens_map.values(), *self._extra]))

    @property
    def all_special_ids(self) -> list[int]:
        """Their ids."""
        ids = [self._backend.token_to_id(token) for token in self.all_special_tokens]
        return [id for id in ids if id is not None]

    def add_special_tokens(
        self, special_tokens_dict: Mapping[str, Any], replace_extra_special_tokens: bool = True
    ) -> int:
        """Sets special tokens, and adds those that the vocabulary does not have.

        Args:
            special_tokens_dict: Tokens by the names of their attributes, such as ``{"pad_token":
                "<pad>"}``; a name that ends with ``_token`` and is new becomes an attribute. Under
                ``"extra_special_tokens"`` a list of tokens, or a dict of names and tokens.
            replace_extra_special_tokens: Whether a list of extra tokens takes the place of those
                from before.

        Returns:
            How many tokens are new. The embeddings of a model must be enlarged by as many.

        Raises:
            ValueError: A name is not one for a special token.
            TypeError: A token is no ``str`` and no ``AddedToken``.
        """
        given = dict(special_tokens_dict)
        if "additional_special_tokens" in given:
            given.setdefault(_EXTRA, given.pop("additional_special_tokens"))
        extra = given.pop(_EXTRA, ())
        if isinstance(extra, Mapping):
            given.update(extra)
            extra = ()
        for name, token in given.items():
            if name not in self._roles:
                if not (isinstance(name, str) and name.endswith("_token")):
                    raise ValueError(
                        f"Key {name} is not a valid special token. Valid keys are: "
                        f"{sorted([*self._roles, _EXTRA])}, and new names that end with _token"
                    )
                self._check_attribute(name)
            self._check_token(name, content_of(token))
        listed = _tokens(extra)
        for token in listed:
            self._check_token(_EXTRA, content_of(token))
        if not given and not listed:
            return 0
        count = self._backend.add_tokens([_special(token) for token in (*given.values(), *listed)])
        self._roles.update({name: content_of(token) for name, token in given.items()})
        if listed:
            kept = [] if replace_extra_special_tokens else self._extra
            object.__setattr__(
                self, "_extra", list(dict.fromkeys([*kept, *map(content_of, listed)]))
            )
        return count


def _tokens(tokens: Any) -> Sequence[Any]:
    if not isinstance(tokens, (list, tuple)):
        raise TypeError(f"{_EXTRA} must be a list of tokens, not {type(tokens).__name__}")
    return tokens


def plain_token(token: Any, is_special: bool) -> AddedToken:
    """The token with all its flags; special if it is, or if that is asked for."""
    if isinstance(token, str):
        return AddedToken(token, special=is_special)
    flags = {flag: bool(getattr(token, flag)) for flag in ("single_word", "lstrip", "rstrip")}
    is_special = is_special or bool(token.special)
    return AddedToken(content_of(token), **flags, normalized=token.normalized, special=is_special)


def _special(token: Any) -> AddedToken:
    return plain_token(token, True)
