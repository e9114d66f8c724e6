"""Where a side is reached: the host and the port, and whether the bucket stands in the host or in the path."""

from pathlib import Path
from typing import Any

import pytest

from rowferry.errors import UsageError
from rowferry.plan import LegacySide, ProductionSide
from rowferry.s3.access.endpoint import Endpoint, resolve_endpoint
from support.s3.tls import Authority


def aws(bucket: str = "photos", **more: Any) -> LegacySide:
    return LegacySide(bucket, **{"region": "eu-west-1", **more})


def own(url: str, **more: Any) -> ProductionSide:
    return ProductionSide("photos", endpoint_url=url, **more)


def at(url: str) -> Endpoint:
    return resolve_endpoint(own(url))


AWS = "https://s3.eu-west-1.amazonaws.com"
ADDRESSES = (
    ("AWS", aws(), AWS, 443, "photos.s3.eu-west-1.amazonaws.com", "/"),
    ("AWS, by the path", aws(addressing="path"), AWS, 443, "s3.eu-west-1.amazonaws.com", "/photos/"),
    ("a bucket with dots", aws("p.example.org"), AWS, 443, "s3.eu-west-1.amazonaws.com", "/p.example.org/"),
    ("a bucket with capitals", aws("P_2012"), AWS, 443, "s3.eu-west-1.amazonaws.com", "/P_2012/"),
    ("another partition", aws(region="cn-north-1"), "https://s3.cn-north-1.amazonaws.com.cn", 443,
     "photos.s3.cn-north-1.amazonaws.com.cn", "/"),
    ("one's own", own("http://minio.internal:9000"), "http://minio.internal:9000", 9000, "minio.internal:9000",
     "/photos/"),
    ("by the host", own("https://fra1.example.com", addressing="virtual"), "https://fra1.example.com", 443,
     "photos.fra1.example.com", "/"),
    ("by the host, with a path", own("https://h.example.com/s3", addressing="virtual"), "https://h.example.com/s3", 443,
     "photos.h.example.com", "/s3/"),
    ("an address, never by the host", own("http://127.0.0.1:9000", addressing="virtual"), "http://127.0.0.1:9000", 9000,
     "127.0.0.1:9000", "/photos/"),
    ("IPv6, never by the host", own("http://[::1]:9000", addressing="virtual"), "http://[::1]:9000", 9000, "[::1]:9000",
     "/photos/"),
    ("a port of the scheme", own("http://h:80"), "http://h", 80, "h", "/photos/"),
    ("a port of https", own("https://h:443"), "https://h", 443, "h", "/photos/"),
    ("a port of the other scheme", own("http://h:443"), "http://h:443", 443, "h:443", "/photos/"),
    ("no port", own("https://h"), "https://h", 443, "h", "/photos/"),
    ("IPv6 without a port", own("http://[::1]"), "http://[::1]", 80, "[::1]", "/photos/"),
    ("a path", own("https://gateway.example.com/s3/"), "https://gateway.example.com/s3", 443, "gateway.example.com",
     "/s3/photos/"),
)  # fmt: skip


def test_a_side_is_reached_at_its_endpoint(subtests: pytest.Subtests) -> None:
    for name, side, url, port, host_header, path in ADDRESSES:
        endpoint = resolve_endpoint(side)
        with subtests.test(name):
            assert (endpoint.url, endpoint.port, endpoint.scheme) == (url, port, url.partition(":")[0])
            assert (endpoint.host_header(side.bucket), endpoint.path_before_key(side.bucket)) == (host_header, path)


UNUSABLE = ("localhost:9000", "ftp://h", "http://", "http://h:99999", "http://h:port", "http://h?x=1", "http://h o",
            "http://[::1")  # fmt: skip


@pytest.mark.parametrize("url", UNUSABLE)
def test_an_unusable_url_is_a_users_mistake(url: str) -> None:
    with pytest.raises(UsageError, match=r"production\.endpoint_url must look like"):
        at(url)


def test_an_unusable_region_is_a_users_mistake() -> None:
    with pytest.raises(UsageError, match=r"legacy.region 'no where!'"):
        resolve_endpoint(aws(region="no where!"))


def test_an_endpoint_set_for_other_programs_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://elsewhere:1")
    assert resolve_endpoint(aws()).host == "s3.eu-west-1.amazonaws.com"


def test_the_bundle_of_certificates_is_the_one_that_the_environment_names_for_https(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = str(Authority(tmp_path, "authority").bundle)
    monkeypatch.setenv("AWS_CA_BUNDLE", bundle)
    assert at("https://h").ca_bundle == bundle
    monkeypatch.setenv("AWS_CA_BUNDLE", "/somewhere/ca.pem")
    assert at("http://h").scheme == "http"
    with pytest.raises(UsageError, match=r"^AWS_CA_BUNDLE names /somewhere/ca.pem, which cannot be read: No such file"):
        at("https://h")
