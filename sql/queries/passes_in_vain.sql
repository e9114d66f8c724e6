-- What may keep workers from finding the entries that an enqueue finds.

-- name: last_batch
-- The highest id of a batch. An enqueue after this gives higher ones.
select coalesce(max(q.id), 0) as id from rowferry.batch_queue as q;

-- name: found_in_vain
-- Whether as many batches as `times` begin with the same entry, and no worker has found it: one may wait, and the others
-- say so (`unread`). One that was halved ends with an error, and has read none.
select exists (
    select from rowferry.batch_queue as q
    inner join rowferry.migration as m on q.migration_id = m.id
    where
        q.id > %(after)s and m.name = %(migration)s and q.queue_name = %(queue)s
        and (q.status = 'INIT' or (q.status = 'DONE' and q.error is null and q.payload ? 'unread'))
    group by q.payload ->> 'entries', q.payload ->> 'first'
    having count(*) >= %(times)s
) as found;
