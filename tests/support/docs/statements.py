"""The statements of SQL in the docs."""

import re


def split_statements(text: str) -> list[str]:
    without_comments = re.sub(r"--[^\n]*", "", text)
    return [statement.strip() for statement in without_comments.split(";") if statement.strip()]
