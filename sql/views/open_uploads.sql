-- The multipart uploads that are under way or wait to be continued, the oldest first.
-- `will_continue`: its batch, or the one that this was split from, waits or is claimed; otherwise nothing continues
-- it, and `rowferry clean-uploads` aborts it.
create or replace view rowferry.open_uploads as
select
    m.name as migration,
    u.production,
    u.key,
    u.upload_id,
    u.batch_id,
    coalesce('INIT' in (q.status, began.status), false) as will_continue,
    u.size_bytes,
    u.begun_at,
    u.touched_at
from rowferry.upload as u
left join rowferry.migration as m on u.migration_id = m.id
left join rowferry.batch_queue as q on u.batch_id = q.id
left join rowferry.batch_attempt as a on u.attempt_id = a.id
left join rowferry.batch_queue as began on a.batch_id = began.id
where u.upload_id is not null
order by u.begun_at;
