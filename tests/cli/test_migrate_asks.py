"""What `rowferry migrate` asks a person before it migrates anything."""

from support.entries.migration import Migration


def migrate(migration: Migration, answers: str) -> str:
    """Run the command with these answers; return what it has shown."""
    migration.write_plan()
    done = migration.run_here("migrate", "--no-objects", typed=answers)
    return done.stdout + done.stderr


def test_it_asks_once_after_all_checks_and_says_what_the_application_must_do_first(migration: Migration) -> None:
    migration.fill(1)
    shown = migrate(migration, "n\n")
    lines = shown.split("Migrate now?")[0].splitlines()
    assert (shown.count("[y/N]"), "✓" in shown.split("[y/N]")[0]) == (1, True)
    assert "your application must find objects in both buckets before you go on (docs/application.md)." in lines[-3]
    assert migration.rows() == {"1": "image/u1/me.png"}
    migrate(migration, "y\n")
    migration.audit()


def test_nothing_is_asked_where_a_check_has_found_a_problem(migration: Migration) -> None:
    migration.fill(1)
    migration.plan["entries"][0]["key"] = "pth"
    assert "[y/N]" not in migrate(migration, "n\n")


def test_a_paused_migration_is_refused_before_anything_is_checked(migration: Migration) -> None:
    migration.given(1)
    migration.run("pause", "--reason", "lunch")
    shown = migrate(migration, "y\n")
    assert ("lunch" in shown, "run `rowferry resume` first" in shown, "✓" in shown) == (True, True, False)


def test_without_processes_it_only_enqueues_for_workers_elsewhere(migration: Migration) -> None:
    migration.fill(3).write_plan()
    done = migration.run_here("migrate", "--yes", "--processes", "0")
    assert (done.returncode, migration.statuses()) == (0, {"INIT"}), done.stderr
    assert "Log:" not in done.stdout
    assert not [*migration.plan_path.parent.glob("*.log")]
