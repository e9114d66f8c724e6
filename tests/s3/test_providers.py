"""What is known of providers before anything is tried: the data and its sources, and what a plan takes from them."""

from datetime import date
from typing import Any, get_args

import msgspec
import pytest

from rowferry.errors import PlanError
from rowferry.plan import LegacySide, ProductionSide
from rowferry.plan.sides import ProviderName
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.providers import Provider, find_provider, find_region, list_providers

FACTS = {field.name for field in msgspec.structs.fields(Provider)} - {"name", "title", "sources"}
REGIONS = {
    "s3.amazonaws.com": ("aws", "us-east-1"),
    "s3.eu-west-3.amazonaws.com": ("aws", "eu-west-3"),
    "s3.dualstack.eu-west-3.amazonaws.com": ("aws", "eu-west-3"),
    "s3.cn-north-1.amazonaws.com.cn": ("aws", "cn-north-1"),
    "fra1.digitaloceanspaces.com": ("spaces", "us-east-1"),
    "0123abc.r2.cloudflarestorage.com": ("r2", "auto"),
    "0123abc.eu.r2.cloudflarestorage.com": ("r2", "auto"),
    "s3.us-west-004.backblazeb2.com": ("b2", "us-west-004"),
    "s3.wasabisys.com": ("wasabi", "us-east-1"),
    "s3.eu-central-2.wasabisys.com": ("wasabi", "eu-central-2"),
    "storage.googleapis.com": ("gcs", "us-east-1"),
    "fsn1.your-objectstorage.com": ("hetzner", "fsn1"),
    "s3.fr-par.scw.cloud": ("scaleway", "fr-par"),
    "s3.eu-west-par.io.cloud.ovh.net": ("ovh", "eu-west-par"),
    "s3.us-east-va.io.cloud.ovh.us": ("ovh", "us-east-va"),
    "nl-ams-1.linodeobjects.com": ("linode", "us-east-1"),
    "ns.compat.objectstorage.eu-frankfurt-1.oraclecloud.com": ("oracle", "eu-frankfurt-1"),
    "s3.eu-de.cloud-object-storage.appdomain.cloud": ("ibm", "us-east-1"),
    "oss-cn-hangzhou.aliyuncs.com": ("oss", "us-east-1"),
    "cos.ap-beijing.myqcloud.com": ("cos", "ap-beijing"),
    "t3.storage.dev": ("tigris", "auto"),
    "gateway.eu1.storjshare.io": ("storj", "us-east-1"),
    "abcd.storage.supabase.co/storage/v1/s3": ("supabase", "us-east-1"),
    "minio.example.org": (None, "us-east-1"),
    "r2.cloudflarestorage.com.example.org": (None, "us-east-1"),
    "127.0.0.1:9000": (None, "us-east-1"),
    "[::1]:9000": (None, "us-east-1"),
    "localhost:9000": (None, "us-east-1"),
}


def own(host: str, **more: Any) -> ProductionSide:
    return ProductionSide("photos", endpoint_url=f"https://{host}", **more)


def test_the_data_has_every_provider_and_a_source_for_each_fact(subtests: pytest.Subtests) -> None:
    assert [*list_providers()] == [*get_args(ProviderName)]
    for name, provider in list_providers().items():
        known = {fact for fact in FACTS if getattr(provider, fact) not in (None, ())}
        sourced = [fact for source in provider.sources for fact in source.facts]
        with subtests.test(name):
            assert sorted(sourced) == sorted(known)
            assert all(source.url.startswith("https://") or source.url == "servers.md" for source in provider.sources)
            assert all(date.fromisoformat(source.seen) for source in provider.sources)


def test_a_provider_and_its_region_are_recognised_by_the_host(subtests: pytest.Subtests) -> None:
    for host, (name, region) in REGIONS.items():
        provider = find_provider(own(host))
        with subtests.test(host):
            assert (provider and provider.name, find_region(own(host))) == (name, region)
    with_hosts = {name for name, provider in list_providers().items() if provider.hosts}
    assert with_hosts == {name for name, _ in REGIONS.values() if name}


def test_without_an_endpoint_it_is_aws() -> None:
    provider = find_provider(LegacySide("photos"))
    assert provider
    assert (provider.name, find_region(LegacySide("photos"))) == ("aws", "us-east-1")


def test_the_bucket_goes_into_the_host_where_the_provider_demands_it() -> None:
    oss = resolve_endpoint(own("oss-cn-hangzhou.aliyuncs.com"))
    assert oss.host_header("photos") == "photos.oss-cn-hangzhou.aliyuncs.com"
    assert resolve_endpoint(own("0123abc.r2.cloudflarestorage.com")).path_before_key("photos") == "/photos/"
    assert resolve_endpoint(own("cos.internal.example.org", provider="cos")).virtual_host
    assert not resolve_endpoint(own("127.0.0.1:9000", provider="cos")).virtual_host


def test_the_words_of_the_plan_win() -> None:
    assert find_region(own("0123abc.r2.cloudflarestorage.com", region="us-east-1")) == "us-east-1"
    assert not resolve_endpoint(own("oss-cn-hangzhou.aliyuncs.com", addressing="path")).virtual_host
    named = own("s3.eu-central-2.wasabisys.com", provider="garage")
    assert (find_provider(named), find_region(named)) == (list_providers()["garage"], "garage")


def test_a_provider_without_a_server_is_refused() -> None:
    with pytest.raises(PlanError, match="write its `endpoint_url`"):
        ProductionSide("photos", provider="r2")
