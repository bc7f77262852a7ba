"""Secrets in texts: keys, tokens and passwords become `***`, and everything else stays as it is.

For what is copied out of a conversation: an index, a journal, a log. The rules look for the marks
that secrets have (a provider's prefix, a name before them, their place in a URL), not for random
letters: commit hashes, UUIDs and order numbers are none.
"""

from __future__ import annotations

import re
from collections.abc import Callable

MASK = "***"

# Prefixes that providers give to their keys, with the least that follows. The prefix stays readable.
_PREFIXED = (
    r"sk-(?=[\w-]*\d)[\w-]{8,}",
    r"sk-(?:[a-z]{2,8}-)*\w{16,}",
    r"(?:sk|rk|pk)_(?:live|test)_\w{10,}",
    r"gh[oprsu]_[A-Za-z0-9]{16,}",
    r"github_pat_\w{16,}",
    r"glpat-[\w-]{16,}",
    r"xox[abeoprs]-[\w-]{10,}",
    r"xapp-[\w-]{10,}",
    r"gsk_[A-Za-z0-9]{16,}",
    r"hf_[A-Za-z0-9]{16,}",
    r"npm_[A-Za-z0-9]{20,}",
    r"pypi-[\w-]{40,}",
    r"pplx-[A-Za-z0-9]{16,}",
    r"xai-[A-Za-z0-9]{16,}",
    r"nvapi-[\w-]{16,}",
    r"tvly-[\w-]{16,}",
    r"r8_[A-Za-z0-9]{20,}",
    r"dop_v1_[0-9a-f]{32,}",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{20,}",
    r"whsec_\w{16,}",
    r"AIza[\w-]{20,}",
    r"ya29\.[\w-]{20,}",
    r"(?:AKIA|ASIA)[0-9A-Z]{16}",
    r"SG\.[\w-]{16,}\.[\w-]{16,}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{20,}",
    r"eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*",
    r"\d{6,12}:(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[\w-]{20,}",
)
_PREFIX = re.compile(r"(?:[a-z]+(?:_(?:live|test|pat|v1)_|[-_.])|[A-Za-z]{4}|(?=\d))", re.IGNORECASE)
_KEYS = re.compile(rf"(?<![\w-])(?:{'|'.join(_PREFIXED)})[\w-]*", re.ASCII)

_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)(.*?)(-----END [A-Z0-9 ]*-----|\Z)", re.DOTALL
)
_URL = re.compile(r"(?<=://)([^\s/:@]*):[^\s/]+(?=@)")
_AUTHORIZATION = re.compile(
    r"(authorization[\"'`]?\s*[:=]\s*[\"'`]?(?:(?:basic|bearer|token|digest)\s+)?)([^\s\"',]{3,})", re.IGNORECASE
)
_BEARER = re.compile(r"(\bbearer\s+)([\w.~+/=-]{18,})", re.IGNORECASE | re.ASCII)
_CURL_USER = re.compile(r"((?:^|\s)(?:-u|--user)[\s=]+[^\s:]+:)(\S+)")

# What is assigned to a password is one, whatever it looks like. A key or a token has to look like one:
# `token: 4096` and `secret: none` are ordinary text.
_PASSWORD = r"password|passwd|passphrase|\bpwd|passwort|kennwort|contraseña|mot de passe|пароль"
_KEY = (
    r"(?:api|access|secret|private|auth|account|client|encryption|signing|master|service)[-_. ]?key"
    r"|(?:(?<![A-Za-z])|(?-i:(?<=[a-z])(?=[TSC])))(?:token|secret|credentials?)"
)
_ASSIGNED = r"[\"'`]?[ \t]*(?::=|=>|[:=：])[ \t]*"
_QUOTED_OR_NOT = r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]+)|(?P<bare>[^\s\"'`,;&|)\]}，。；]+))"
_PASSWORDS = re.compile(rf"(?:{_PASSWORD}){_ASSIGNED}{_QUOTED_OR_NOT}", re.IGNORECASE)
_NAMED_KEYS = re.compile(rf"(?:{_KEY}){_ASSIGNED}{_QUOTED_OR_NOT}", re.IGNORECASE)
_FLAGS = re.compile(
    rf"(?<!\S)--(?:api-?key|(?:\w+-)?token|(?:\w+-)?secret|password)[ =]{_QUOTED_OR_NOT}", re.IGNORECASE
)
_SAID = re.compile(
    rf"(?:(?:{_PASSWORD}|\bpin)[ \t]+(?:is|was|ist|es|est)[ \t]+"
    r"|(?:密码|口令|密钥|パスワード|비밀번호|암호)\s*(?:是|为|は|는|은|：|:)?\s*)"
    r"[\"'`]?(?P<bare>(?:(?![\"'`,;])[!-~]){4,})",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"[$<{%*(\[]|(?:null|none|true|false|undefined|os\.|process\.)", re.IGNORECASE)
_LEAST_KEY = 8


def redact(text: str) -> str:
    """The text with its secrets masked, in as many lines. Redacting twice gives the same as once."""
    text = _PRIVATE_KEY.sub(_without_body, text)
    text = _URL.sub(rf"\1:{MASK}", text)
    text = _KEYS.sub(lambda found: _prefix(found[0]) + MASK, text)
    for pattern in (_AUTHORIZATION, _BEARER, _CURL_USER):
        text = pattern.sub(lambda found: found[1] + _masked(found[2]), text)
    text = _sub_value(_PASSWORDS, text, lambda value: len(value) >= 3)
    text = _sub_value(_FLAGS, text, lambda _value: True)
    text = _sub_value(_NAMED_KEYS, text, _looks_like_a_key)
    return _sub_value(_SAID, text, _is_no_word)


def _without_body(found: re.Match[str]) -> str:
    lines = found[2].count("\n")
    body = f"\n{MASK}" + "\n" * (lines - 1) if lines else f" {MASK} "
    return found[1] + body + found[3]


def _prefix(key: str) -> str:
    found = _PREFIX.match(key)
    return found[0] if found else ""


def _masked(value: str) -> str:
    """`***`; what refers to a secret elsewhere, or was masked before, stays."""
    return value if MASK in value or _PLACEHOLDER.match(value) else MASK


def _sub_value(pattern: re.Pattern[str], text: str, is_secret: Callable[[str], bool]) -> str:
    """Mask the values that a pattern finds, its group `quoted` or `bare`."""

    def mask(found: re.Match[str]) -> str:
        group = "bare" if found["bare"] is not None else "quoted"
        if not is_secret(found[group]):
            return found[0]
        start, end = found.start(group) - found.start(), found.end(group) - found.start()
        return found[0][:start] + _masked(found[group]) + found[0][end:]

    return pattern.sub(mask, text)


def _looks_like_a_key(value: str) -> bool:
    """Letters and digits together, or more letters than a word has."""
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return len(value) >= _LEAST_KEY and (mixed or (len(value) >= 20 and " " not in value))


def _is_no_word(value: str) -> bool:
    """Not what follows "the password is ..." in ordinary speech."""
    return any(not c.isalpha() for c in value.rstrip(".,;:!?\"'`)"))
