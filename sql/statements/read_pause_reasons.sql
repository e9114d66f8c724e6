-- Why workers have paused migrations: one row for each that was paused by workers and not by a person.
select
    name,
    pause_reason
from rowferry.migration
where pause_reason is not null
