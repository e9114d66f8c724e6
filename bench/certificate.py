"""A certificate for servers on this machine, which a client trusts when it is told the file."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate of 127.0.0.1 and its key into a folder, and return the paths."""
    key, number = ec.generate_private_key(ec.SECP256R1()), x509.random_serial_number()
    # of two certificates with one name, a client would try one only
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"bench {number:x}")])
    now = datetime.now(UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), number)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "bench.crt", folder / "bench.key"
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return paths
