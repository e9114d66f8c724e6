"""A new user gets from DATABASE_URL and two buckets to a migrated Discourse with the commands of the README."""

import shlex
import sys
from pathlib import Path

from support.entries.discovering import Discovering
from support.s3.buckets import Buckets
from whole.new_user import discourse_like, fill_in, read_way, walk


def test_the_way_of_the_readme_leads_to_migrated_objects(database: str, moto_buckets: Buckets, tmp_path: Path) -> None:
    """All commands but those that install: they run as they are written, with the user's settings filled in."""
    world = Discovering(database, moto_buckets, tmp_path)
    world.execute("drop schema rowferry cascade")
    prelude = f'rowferry() {{ {shlex.quote(sys.executable)} -m rowferry_cli "$@"; }}'
    with discourse_like(world, 12) as application:
        typed, said = walk(list(fill_in(read_way(), world)), world, tmp_path, prelude=prelude)
        assert [command.split()[0] for command, _ in typed] == [*["export"] * 3, *["rowferry"] * 3]
        assert "This is Discourse" in said
        for row in application.rows.values():
            for key in row.objects.values():
                assert world.production.read(key) == application.bodies[key]
