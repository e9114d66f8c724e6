"""A certificate authority of the tests, what it signs, and servers that speak TLS with it."""

import ipaddress
import os
import ssl
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPSConnection
from pathlib import Path
from unittest.mock import patch

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from rowferry_lab.servers.s3_servers import VersityServer
from rowferry_lab.servers.server_process import choose_account

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, each in a file."""

    certificate: Path
    key: Path


class Authority:
    """A throwaway CA in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = name_of(name)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self._certificate = (
            begin(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.bundle = folder / f"{name}.pem"
        self.bundle.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))
        self.bundle.chmod(0o644)

    def sign(self, name: str, *, address: str = LOOPBACK) -> Certificate:
        """Return a certificate for a server at `address`, or for a client of this name; any account may use it."""
        key = ec.generate_private_key(ec.SECP256R1())
        known_as = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            begin(name_of(name), self._name, key.public_key())
            .add_extension(known_as, critical=False)
            .add_extension(identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        made = Certificate(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        made.certificate.chmod(0o644)
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        made.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
        made.key.chmod(0o600)
        return made


def name_of(words: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, words)])


def begin(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    built = x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number())
    return built.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))


def give_to_postgres(certificate: Certificate) -> None:
    """Let the account that PostgreSQL runs as read the key, which must be its own."""
    account = choose_account()
    if account is not None:
        os.chown(certificate.key, account.pw_uid, account.pw_gid)


def serving_context(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    return context


class TlsVersityServer(VersityServer):
    """versitygw, over https only."""

    def __init__(self, program: Path, certificate: Certificate, bundle: Path) -> None:
        super().__init__(program)
        self._certificate = certificate
        self._bundle = bundle

    def command(self, port: int, folder: Path) -> list[str]:
        program, *arguments = super().command(port, folder)
        tls = ["--cert", str(self._certificate.certificate), "--key", str(self._certificate.key)]
        return [program, *tls, *arguments]

    def start(self) -> None:
        with patch("rowferry_lab.servers.s3_servers.answers_http", self._answers):
            super().start()
        self.endpoint_url = self.endpoint_url.replace("http://", "https://")

    def _answers(self, port: int) -> bool:
        context = ssl.create_default_context(cafile=str(self._bundle))
        connection = HTTPSConnection(LOOPBACK, port, timeout=10, context=context)
        with closing(connection), suppress(OSError):
            connection.request("GET", "/")
            with connection.getresponse() as response:
                return response.status > 0
        return False
