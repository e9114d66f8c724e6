"""What each refusal of a server is told as: a table of what servers say, and of what a person shall type."""

from dataclasses import dataclass

import msgspec
import pytest

from rowferry.plan.sides import LegacySide, ProductionSide, Side
from rowferry.s3.cures import Refusal, find_cure, list_cases, read_refusal

PRODUCTION = ProductionSide(bucket="b")
LEGACY = LegacySide(bucket="a")


@dataclass(frozen=True)
class Said:
    """What a server said, by its page or a report, and what is typed next."""

    code: str
    message: str
    operation: str
    typed: str
    status: int = 0
    side: Side = PRODUCTION


SAID = [
    # Addressing: OSS, COS, Transfer Acceleration
    Said(
        "SecondLevelDomainForbidden",
        "Please use virtual hosted style to access.",
        "HeadBucket",
        'addressing = "virtual"',
    ),
    Said("PathStyleDomainForbidden", "", "ListObjectsV2", 'addressing = "virtual"'),
    Said(
        "InvalidRequest",
        "S3 Transfer Acceleration endpoint supports only virtual-host style",
        "",
        'addressing = "virtual"',
    ),
    # A bucket's policy
    Said("AccessDenied", "Access denied by SecureTransport condition", "ListObjectsV2", "begins with https://"),
    Said(
        "AccessDenied", "Bucket is requester pays bucket", "GetObject", "requester_pays = true in [legacy]", 403, LEGACY
    ),
    Said("AccessDenied", "policy demands x-amz-server-side-encryption", "PutObject", 'encryption = "AES256"', 403),
    Said("AccessDenied", "x-amz-acl bucket-owner-full-control is required", "PutObject", "acl = "),
    Said("AccessControlListNotSupported", "The bucket does not allow ACLs", "PutObject", "leave `acl` out"),
    Said("InvalidStorageClass", "", "PutObject", "storage_class"),
    Said("InvalidRequest", "Missing required header: x-amz-checksum-crc32", "PutObject", "take Content-MD5 as well"),
    Said("InvalidRequest", "Content-MD5 HTTP header is required (Object Lock)", "UploadPart", 'transfer = "stream"'),
    Said(
        "AccessDenied", "with an explicit deny in a resource-based policy", "PutObject", "as the bucket's policy", 403
    ),
    Said("AccessDenied", "with an explicit deny in a resource-based policy", "GetObject", "meet its condition", 403),
    Said("AccessDenied", "explicit deny: aws:MultiFactorAuthPresent", "PutObject", "session with MFA", 403),
    Said("AccessDenied", "explicit deny in a service control policy", "PutObject", "the administrator", 403),
    Said("AccessDenied", "because no VPC endpoint policy allows it", "PutObject", "address of this host", 403),
    Said("HTTP 403", "", "ListObjectsV2", "firewall", 403),
    Said("KMS.DisabledException", "arn:aws:kms:eu-west-1:1:key/1 is disabled.", "GetObject", "enable it again", 400),
    Said("AccessDenied", "not authorized to perform: kms:GenerateDataKey", "PutObject", "kms:GenerateDataKey"),
    # Credentials, regions, endpoints
    Said("SignatureDoesNotMatch", "", "ListObjectsV2", "where it is right, correct `region` of [production]"),
    Said("Unauthorized", "Unauthorized", "ListObjectsV2", "account and jurisdiction", 401),
    Said("SSLError", "[SSL: WRONG_VERSION_NUMBER] wrong version number", "HeadBucket", "begins with http://"),
    Said("InvalidArgument", "Credential access key has length 20, should be 32", "ListObjectsV2", "provider's S3 keys"),
    Said(
        "AuthorizationHeaderMalformed",
        "the region 'us-east-1' is wrong; expecting 'eu-west-3'",
        "",
        'region = "eu-west-3"',
    ),
    Said("AuthorizationHeaderMalformed", "", "", "correct `region`"),
    Said(
        "AuthorizationHeaderMalformed",  # Garage
        "unexpected scope: 20261127/us-east-1/s3/aws4_request, expected: 20261127/garage/s3/aws4_request",
        "",
        'region = "garage"',
    ),
    Said("InvalidArgument", "Unsupported Authorization Type", "ListObjectsV2", "Version 4", 400),
    Said("PermanentRedirect", "use the endpoint s3.eu-central-1.wasabisys.com.", "", "write that as endpoint_url"),
    Said("TemporaryRedirect", "", "", "correct `endpoint_url`", 307),
    Said("ExpiredToken", "", "", "renew the production credentials"),
    Said("RequestTimeTooSkewed", "", "", "NTP"),
    Said("SignatureDoesNotMatch", "Signature not yet current: 20261127T180000Z is still later", "", "NTP", 403),
    Said("AccessDenied", "Request has expired", "ListObjectsV2", "NTP", 403),
    Said(
        "HTTP 302", "the server names the endpoint https://sso.example.com", "ListObjectsV2", "sso.example.com, if", 302
    ),
    Said("HTTP 308", "", "ListObjectsV2", "perhaps with https", 308),
    Said("InvalidBucketName", "The specified bucket is not valid.", "ListObjectsV2", "correct `bucket`", 400),
    Said("InvalidRequest", "use CreateSession for a directory bucket", "", "general purpose bucket", 400),
    Said("AccessDenied", "", "HeadObject", "s3:ListBucket, without which a missing object looks forbidden"),
    Said("AccessDenied", "", "ListObjectsV2", "give the legacy credentials s3:ListBucket", 403, LEGACY),
    Said("AccessDenied", "", "CopyObject", "let them read the legacy bucket", 403),
    # Limits
    Said(
        "EntityTooLarge",
        "Your proposed upload exceeds the maximum of 5368709120 bytes",
        "PutObject",
        "smaller multipart_threshold_bytes",
    ),
    Said("HTTP 413", "", "PutObject", "client_max_body_size", 413),
    Said("EntityTooLarge", "The object exceeded the maximum allowed size", "PutObject", "the bucket's limit", 413),
    Said("InvalidRequest", "The specified copy source is larger than 1", "CopyObject", "smaller multipart", 400),
    Said("MissingContentLength", "", "PutObject", "proxy_request_buffering", 411),
    Said("HTTP 415", "", "PutObject", "text/x-rowferry", 415),
    Said("QuotaExceeded", "", "PutObject", "raise the quota"),
    Said(
        "AccessDenied", "storage_cap_exceeded: Cannot upload files, storage cap exceeded", "PutObject", "raise the cap"
    ),
    Said("MetadataTooLarge", "", "PutObject", "shorten the metadata"),
    Said("InvalidArgument", "Part number must be an integer between 1 and 1000", "UploadPart", 'provider = "scaleway"'),
    # What a server does not have
    Said("InvalidRequest", "Source object is too small", "UploadPartCopy", "goes in one piece", 400),
    Said("NotImplemented", "", "UploadPartCopy", 'transfer = "stream"', 501),
    Said("NotImplemented", "", "CopyObject", 'transfer = "stream"', 501),
    Said(
        "NotImplemented",
        "A header you provided implies functionality: x-amz-tagging",
        "CopyObject",
        'tags = "none"',
        501,
    ),
    Said("NotImplemented", "", "PutObject", 'tags = "none"', 501),
    Said("MethodNotAllowed", "", "PutObject", 'tags = "none"', 405),
    Said("InvalidArgument", "Invalid argument. (request 17)", "PutObject", 'tags = "none"'),
    Said("InvalidTag", "Object tags cannot be greater than 10", "CopyObject", "or [queue.tag] in the plan", 400),
    Said("XMinioServerNotInitialized", "", "ListObjectsV2", "later", 503),
    Said("EntityTooSmall", "", "CompleteMultipartUpload", "so that it goes in one piece"),
    Said("NoSuchUpload", "", "CompleteMultipartUpload", "lifecycle"),
    Said("ServiceUnavailable", "", "PutObject", "later", 503),
    Said("TagsLost", "", "PutObject", 'tags = "none"'),
    Said("InvalidArgument", "", "GetObjectTagging", 'tags = "none"', 400),
    Said("HTTP 405", "", "GetObjectTagging", 'tags = "none"', 405),
    Said("NotImplemented", "", "CreateMultipartUpload", "so that it goes in one piece", 501),
    # What holds for a whole account, or for what lies between
    Said("AllAccessDisabled", "", "GetObject", "ask the provider"),
    Said("HTTP 402", "", "GetObject", "ask the provider", 402),
    Said("HTTP 407", "", "GetObject", "HTTPS_PROXY", 407),
    Said("HTTP 400", "The plain HTTP request was sent to HTTPS port", "", "begins with https://", 400),
    Said("InvalidAccessKeyId", "", "ListObjectsV2", "to valid ones"),
    Said("AccessDenied", "", "PutObject", "as the policy demands"),
    # One object
    Said("InvalidObjectState", "", "GetObject", "restore"),
    Said("ObjectNotInActiveTierError", "", "CopyObject", "restore"),
    Said("ObjectLocked", "", "PutObject", "legal hold"),
    Said("InvalidKey", "Invalid key: Übung", "PutObject", "another key"),
    Said("DigestMismatch", "", "PutObject", "verify --deep"),
]


@pytest.mark.parametrize("said", SAID, ids=lambda said: f"{said.code} {said.operation} {said.typed[:20]}")
def test_what_a_server_said_is_told_with_what_to_type(said: Said) -> None:
    cure = find_cure(Refusal(said.code, said.message, said.status, said.operation), said.side)
    assert cure is not None
    assert said.typed in str(cure)


def test_an_endpoint_that_a_server_names_is_in_the_words() -> None:
    cure = find_cure(Refusal("TemporaryRedirect", "location is http://b.s3.eu-north-1.amazonaws.com", 307), PRODUCTION)
    assert cure is not None
    assert cure.means == "the bucket is served at http://b.s3.eu-north-1.amazonaws.com"


def test_what_the_plan_has_is_not_told_again() -> None:
    said = Refusal("AccessDenied", "policy demands x-amz-server-side-encryption", 403, "PutObject")
    encrypted = msgspec.structs.replace(PRODUCTION, encryption="AES256")
    assert getattr(find_cure(said, PRODUCTION), "case", "") == "encryption-demanded"
    assert getattr(find_cure(said, encrypted), "case", "") == "write-denied"


def test_a_status_is_read_from_the_words_of_an_error() -> None:
    assert read_refusal("UploadPart production: HTTP 413") == Refusal("HTTP 413", "", 413, "UploadPart")


def test_a_guess_says_that_it_is_one() -> None:
    assert str(find_cure(Refusal("SignatureDoesNotMatch"), LEGACY)).startswith("perhaps ")


def test_what_no_case_knows_has_no_cure() -> None:
    assert find_cure(Refusal("Teapot", "short and stout", 418, "PutObject"), PRODUCTION) is None


def test_each_case_is_told_for_something_that_a_server_said() -> None:
    cures = (find_cure(Refusal(said.code, said.message, said.status, said.operation), said.side) for said in SAID)
    assert {case.name for case in list_cases()} == {cure.case for cure in cures if cure is not None}


@pytest.mark.parametrize(
    ("code", "message", "case"),
    [
        ("AccessDenied", "is not authorized on resource arn:aws:s3:::my-assets/bookworm/kms-1.png", "write-denied"),
        ("BadDigest", "The Content-MD5 you specified did not match what we received", "digest"),
        ("Teapot", "Insufficient storage capacity", ""),
        ("TooManyRequests", "too many requests from this IP address", ""),
    ],
)
def test_a_name_or_a_common_word_is_no_case(code: str, message: str, case: str) -> None:
    assert getattr(find_cure(Refusal(code, message, 403, "PutObject"), PRODUCTION), "case", "") == case
