"""Makes foreign text fit for a page that others read: secrets hidden, control characters shown."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

from rowferry.environment import read_secret
from rowferry.errors import UsageError
from rowferry.formatting import show_text

HIDDEN = "[hidden]"
SHORTEST_SECRET = 8
"""Shorter ones would be found in ordinary words."""
LONGEST_SECRET_BYTES = 65_536
"""A larger file holds something else; a pipe or a device has no size."""

_NAMES = (
    r"(?:password|passwd|passphrase|secret|token|signature|credential|api[_-]?key|private[_-]?key|access[_-]?key"
    r"|accesskeyid|\bsig)[\w.-]{0,40}"
)
"""They may have letters before and behind them. No repetition begins a pattern, or is long where it may
begin often: the time is linear."""
_SURE_NAMES = r"(?:password|passwd|passphrase|secret_access_key|secret_key|security-token)"
"""With a colon behind, the others may be codes of S3: `ExpiredToken: ...`."""
_PATTERNS = (
    # The user and password of a URL; not the port and path of one without.
    (re.compile(r"(?<=://)[^\s/@:]{0,200}:(?!\d{1,5}/)[^\s@]{0,400}(?=@)"), HIDDEN),
    (re.compile(r"PRIVATE KEY-----.*?(?:-----END|$)", re.DOTALL), f"PRIVATE KEY {HIDDEN}"),
    (re.compile(r"(\bAuthorization[\"']?\s*[:=]\s*).*", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(r"\b(Bearer\s+)[A-Za-z0-9+/=._~-]{16,}", re.IGNORECASE), rf"\1{HIDDEN}"),
    # name=value, "name": "value", password: value; a value goes to its quote, or to the next space.
    (re.compile(rf"({_NAMES}\s*=\s*)(?:\"[^\"]*\"?|'[^']*'?|[^\s&,;\"'<>]+)", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(rf"({_NAMES}[\"']\s*:\s*)(?:\"[^\"]*\"?|'[^']*'?)", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(rf"({_SURE_NAMES}\s*:\s*)[^\s,;\"'<>]+", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(rf"({_NAMES}>)[^<]+(?=<)", re.IGNORECASE), rf"\1{HIDDEN}"),
    # The id of an AWS key.
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), HIDDEN),
)

_VARIABLES = re.compile(r"PASSWORD|SECRET|TOKEN|DATABASE_URL")
_PASSWORD = re.compile(r"://[^\s/@:]*:([^\s/@]+)@|\bpassword\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S+))")


def find_secrets(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the secrets of an environment, as they are and as a URL quotes them; of a DSN, its password.

    A secret may be in a file that NAME_FILE names; one that cannot be read is passed over.
    """
    found: set[str] = set()
    for variable in filter(_VARIABLES.search, environ):
        name = variable.removesuffix("_FILE")
        value = environ[variable] if name == variable else _read_file(environ, name)
        if name == "DATABASE_URL":
            found |= {text for match in _PASSWORD.finditer(value) for text in match.groups() if text}
        else:
            found.add(value)
    found |= {unquote(secret) for secret in found}
    found |= {form for secret in found for form in (quote(secret, safe=""), quote_plus(secret))}
    return frozenset(secret for secret in found if len(secret) >= SHORTEST_SECRET)


def _read_file(environ: Mapping[str, str], name: str) -> str:
    """Return the secret in the file that NAME_FILE names; empty where there is none that can be read to its end."""
    variable = f"{name}_FILE"
    try:
        is_small = 0 < Path(environ[variable]).stat().st_size <= LONGEST_SECRET_BYTES
        return read_secret({variable: environ[variable]}, name) if is_small else ""
    except (OSError, ValueError, UsageError):
        return ""


def hide_secrets(text: str, secrets: Collection[str] = ()) -> str:
    """Return a text without these secrets, nor what looks like one: passwords, signatures, tokens, AWS keys."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def clean(text: str, secrets: Collection[str] = ()) -> str:
    """Return foreign text for the page: secrets hidden, control characters and marks of direction escaped."""
    return show_text(hide_secrets(text, secrets))


def cut(text: str, most: int = 400) -> str:
    """Return the beginning of a text that was cleaned: a secret that was cut in two would not be found."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
