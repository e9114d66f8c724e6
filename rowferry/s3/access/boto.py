"""The credentials that boto3 finds on this host by its chain.

Imported where they are asked for: it takes 0.16 s of CPU, a third of a worker's start.
"""

# pyright: reportMissingTypeStubs=false
# botocore carries no types; what is used of it is narrowed at once.

from typing import Any

import boto3.session
from botocore.exceptions import BotoCoreError, ClientError, ProfileNotFound

from rowferry.errors import UsageError

FAULTS = (BotoCoreError, ClientError)
"""What botocore raises."""


def find_credentials(side: str, profile: str | None, remedy: str) -> Any:
    """Return what boto3 finds for a profile or by its chain; it may fetch lazily, at the first use.

    Raises UsageError, which ends with the remedy, where that is nothing.
    """
    try:
        session: Any = boto3.session.Session(profile_name=profile)
        found: Any = session.get_credentials()
    except ProfileNotFound as error:
        raise UsageError(
            f"{side}.profile {profile!r} is not in the AWS configuration of this host; {remedy}"
        ) from error
    except FAULTS as error:
        raise UsageError(f"boto3 found no credentials for the {side} bucket ({error}); {remedy}") from error
    if found is None:
        raise UsageError(f"there are no credentials for the {side} bucket; {remedy}, or an AWS profile")
    return found
