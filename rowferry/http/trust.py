"""Which certificate authorities are trusted."""

# pyright: reportMissingTypeStubs=false
# botocore carries no types; what is used of it is narrowed at once.

import os
import ssl
from pathlib import Path
from typing import Any

from rowferry.errors import UsageError

VARIABLES = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
"""Each names a file of authorities to trust instead of the system's; the first one that is set counts."""


def find_bundle() -> str | None:
    """Return the file of authorities that the environment names, None for the system's own."""
    return next((value for name in VARIABLES if (value := os.environ.get(name))), None)


def check_bundle(path: str) -> None:
    """Raise UsageError unless the file holds certificates: its users would not say so."""
    name = next(name for name in VARIABLES if os.environ.get(name) == path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        raise UsageError(f"{name} names {path}, which holds no certificate.") from error
    except OSError as error:
        raise UsageError(f"{name} names {path}, which cannot be read: {error.strerror}.") from error


def find_authorities(bundle: str | None) -> str | None:
    """Return the file of authorities to trust; None where the system keeps a folder of them instead of a file.

    Where Python finds no authorities of the system, those that come with botocore are taken, as boto3 does.
    """
    if bundle is not None:
        return bundle
    paths: Any = ssl.get_default_verify_paths()
    if paths.cafile:
        return paths.cafile
    has_folder = bool(paths.capath) and any(Path(paths.capath).iterdir())
    if has_folder:
        return None
    from botocore.httpsession import get_cert_path  # noqa: PLC0415  # pyright: ignore[reportUnknownVariableType]

    return get_cert_path(True)


def trust(bundle: str | None) -> ssl.SSLContext:
    """Return TLS that checks certificates and names: against the file's authorities, or the system's.

    Private authorities often break RFC 5280: Python 3.13 began to refuse them, botocore does not.
    """
    context = ssl.create_default_context(cafile=find_authorities(bundle))
    context.verify_flags &= ~(ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
    return context
