-- What there is to do for one migration, and who is at it.
select
    (
        select count(*)
        from rowferry.batch_queue as q
        inner join rowferry.migration as m on q.migration_id = m.id
        where q.status = 'INIT' and m.name = %(migration)s
    ) as open_batches,
    (select count(*) from rowferry.claimed_batches as h where h.migration = %(migration)s) as in_hand,
    (select count(*) from rowferry.live_workers) as workers
