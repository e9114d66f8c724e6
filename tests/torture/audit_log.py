"""What the table of entries went through, put down by the table itself: an account that the queue has no part in."""

from collections.abc import Iterator, Mapping

from torture.world import World

KEEP = """
create table public.audit_log (
    id bigint not null, did text not null, old_key text, new_key text, by_whom text not null
);
create function public.note_change() returns trigger language plpgsql as $$
begin
    insert into public.audit_log
    values (coalesce(new.id, old.id), tg_op, old.path, new.path, current_setting('application_name'));
    return null;
end $$;
create trigger note_change after insert or update or delete on public.avatars
for each row execute function public.note_change();
"""
MOVES = """
select count(*)::int from public.audit_log
where by_whom like 'rowferry worker%%' and old_key like 'image/%%' and new_key = 'avatar/' || substr(old_key, 7)
"""
FOREIGN = """
select count(*)::int from public.audit_log
where
    by_whom like 'rowferry%%'
    and (did <> 'UPDATE' or old_key not like 'image/%%' or new_key <> 'avatar/' || substr(old_key, 7))
"""
EXPLAINED = """
select count(*)::int from rowferry.entry_failure as f
where
    exists (
        select from public.audit_log as j
        where j.id::text = f.entry_id and j.by_whom = 'application'
        and case f.outcome
            when 'changed' then j.did = 'UPDATE' and j.old_key = f.key
            when 'deleted' then j.did = 'DELETE'
        end
    )
"""
TOLD_MOVES = "select coalesce(sum(migrated + kept), 0)::int from rowferry.batch_queue where queue_name = 'migrate'"
TOLD_CHANGES = "select coalesce(sum(changed + deleted), 0)::int from rowferry.batch_queue"
DONE = {"rows inserted": "INSERT", "rows renamed": "UPDATE", "rows deleted": "DELETE"}
DID = "select count(*)::int from public.audit_log where by_whom = 'application' and did = %s"


class AuditLog:
    """Kept from now on by a trigger, in the transaction of each change: what was rolled back stands nowhere."""

    def __init__(self, world: World) -> None:
        self._world = world
        world.migration.execute(KEEP)

    @property
    def moves(self) -> int:
        """Return how often a worker has moved a row from its legacy key to its production key."""
        return self._world.ask(MOVES)

    @property
    def explained(self) -> int:
        """Return how many `changed` and `deleted` entries the application has indeed rewritten or deleted."""
        return self._world.ask(EXPLAINED)

    def differences(self, done: Mapping[str, int]) -> Iterator[str]:
        """Yield in what the queue, or the application by what it has `done`, differs."""
        if (told := self._world.ask(TOLD_MOVES)) != self.moves:
            yield f"the queue tells of {told} rows that were moved, the table of {self.moves}"
        if (told := self._world.ask(TOLD_CHANGES)) != self.explained:
            yield f"the queue tells of {told} rows that were changed or deleted, the table of {self.explained}"
        if foreign := self._world.ask(FOREIGN):
            yield f"workers did something else to a row, {foreign} times"
        for words, verb in DONE.items():
            if (found := self._world.ask(DID, verb)) != done.get(words, 0):
                yield f"the application tells of {done.get(words, 0)} {words}, the table of {found}"
