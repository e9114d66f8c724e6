from pathlib import Path

import pytest

from rowferry.errors import UsageError
from rowferry.plan import Addressing, LegacySide, ProductionSide
from rowferry.s3.access.endpoint import Endpoint, resolve_endpoint
from support.s3.tls import Authority


def at_aws(bucket: str = "photos", region: str = "eu-west-1", addressing: Addressing = "auto") -> Endpoint:
    return resolve_endpoint(LegacySide(bucket, region=region, addressing=addressing))


def at(url: str, addressing: Addressing = "auto") -> Endpoint:
    return resolve_endpoint(ProductionSide("photos", endpoint_url=url, addressing=addressing))


def test_without_an_endpoint_the_side_is_aws_in_its_region() -> None:
    endpoint = at_aws()
    assert (endpoint.url, endpoint.port) == ("https://s3.eu-west-1.amazonaws.com", 443)
    assert endpoint.host_header("photos") == "photos.s3.eu-west-1.amazonaws.com"
    assert endpoint.path_before_key("photos") == "/"


def test_other_partitions_have_hosts_of_their_own() -> None:
    assert at_aws(region="cn-north-1").host == "s3.cn-north-1.amazonaws.com.cn"


@pytest.mark.parametrize("bucket", ["photos.example.org", "Photos_2012"])
def test_a_bucket_that_is_no_host_label_goes_into_the_path(bucket: str) -> None:
    endpoint = at_aws(bucket)
    assert not endpoint.virtual_host
    assert endpoint.path_before_key(bucket) == f"/{bucket}/"


def test_an_endpoint_of_ones_own_has_the_bucket_in_the_path() -> None:
    endpoint = at("http://minio.internal:9000")
    assert (endpoint.scheme, endpoint.host, endpoint.port) == ("http", "minio.internal", 9000)
    assert endpoint.host_header("photos") == "minio.internal:9000"
    assert endpoint.path_before_key("photos") == "/photos/"


def test_addressing_is_what_the_plan_says() -> None:
    assert at("https://fra1.example.com", "virtual").host_header("photos") == "photos.fra1.example.com"
    assert at_aws(addressing="path").path_before_key("photos") == "/photos/"


def test_an_address_never_has_a_bucket_in_front() -> None:
    assert at("http://127.0.0.1:9000", "virtual").host_header("photos") == "127.0.0.1:9000"
    assert at("http://[::1]:9000", "virtual").host_header("photos") == "[::1]:9000"


@pytest.mark.parametrize(
    ("url", "host_header"),
    [
        ("http://h:80", "h"),
        ("https://h:443", "h"),
        ("http://h:443", "h:443"),
        ("https://h", "h"),
        ("http://[::1]", "[::1]"),
    ],
)
def test_a_schemes_own_port_goes_unsaid(url: str, host_header: str) -> None:
    assert at(url).host_header("photos") == host_header


def test_a_path_of_the_endpoint_comes_before_the_bucket() -> None:
    endpoint = at("https://gateway.example.com/s3/")
    assert endpoint.path_before_key("photos") == "/s3/photos/"
    assert endpoint.url == "https://gateway.example.com/s3"


@pytest.mark.parametrize(
    "url",
    [
        "localhost:9000",
        "ftp://h",
        "http://",
        "http://h:99999",
        "http://h:port",
        "http://h?x=1",
        "http://h o",
        "http://[::1",
    ],
)
def test_an_unusable_url_is_a_users_mistake(url: str) -> None:
    with pytest.raises(UsageError, match=r"production\.endpoint_url must look like"):
        at(url)


def test_a_url_with_a_password_is_refused_without_repeating_it() -> None:
    with pytest.raises(UsageError) as refused:
        at("https://user:s3cr3t@h")
    assert "s3cr3t" not in str(refused.value)


def test_an_unusable_region_is_a_users_mistake() -> None:
    with pytest.raises(UsageError, match=r"legacy.region 'no where!'"):
        at_aws(region="no where!")


def test_an_endpoint_set_for_other_programs_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://elsewhere:1")
    assert at_aws().host == "s3.eu-west-1.amazonaws.com"


def test_the_bundle_of_certificates_is_the_one_boto3_uses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = str(Authority(tmp_path, "authority").bundle)
    monkeypatch.setenv("AWS_CA_BUNDLE", bundle)
    assert at("https://h").ca_bundle == bundle


def test_the_bundle_matters_to_https_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "/somewhere/ca.pem")
    assert at("http://h").scheme == "http"
    with pytest.raises(UsageError, match=r"^AWS_CA_BUNDLE names /somewhere/ca.pem, which cannot be read: No such file"):
        at("https://h")
