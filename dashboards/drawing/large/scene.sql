-- Four migrations of 40 M entries, as they would stand after three days: written into the tables themselves, whose
-- triggers count them. `scene_host` holds the hosts: how many of 100 batches each finishes, and since when it finishes none.

select rowferry.register_migration(
    'avatars',
    '{"entries": [{"table": "public.avatars"}, {"table": "public.covers"}]}',
    '{"migrate": {"next": ["verify"]}, "verify": {"max_in_hand": 32}}'
);
select rowferry.register_migration('covers-stalled', '{"entries": [{"table": "public.covers"}]}', '{}');
select rowferry.register_migration(
    'customer-documents-2019-to-2026-eu-central-1-to-ap-southeast',
    '{"entries": [{"table": "public.documents"}]}',
    '{"migrate": {"next": ["check_each_document_against_the_retention_register_of_2019"]}}'
);
select rowferry.register_migration('thumbnails', '{"entries": [{"table": "public.thumbnails"}]}', '{}');
update rowferry.migration set created_at = now() - interval '3 days', passes = 1;

-- A cutover whose last verify has failed: five passes over rows that stay, then the switch.
update rowferry.migration
set passes = 5, moment_at = now() - interval '2 hours', switched_at = now() - interval '110 minutes'
where name = 'thumbnails';
insert into rowferry.pass (migration_id, label, number, began_at, since, watermark)
select
    m.id,
    'public.thumbnails.path',
    p.number,
    now() - p.ago,
    case when p.number > 1 then now() - p.ago - interval '10 minutes' end,
    now() - p.ago - interval '1 minute'
from rowferry.migration as m
cross join (
    values (1, interval '2 days'), (2, interval '4 hours'), (3, interval '3 hours'), (4, interval '130 minutes'),
    (5, interval '105 minutes')
) as p (number, ago)
where m.name = 'thumbnails';

insert into rowferry.worker (
    id, host, pid, version, batches, in_flight_limit, queues, started_at, last_seen_at, reported_at
)
select
    format('%s:%s:%s', h.host, 1000 + 10 * h.number + p.number, case when p.number > 4 - h.lost then 'lost' else 'live' end),
    h.host,
    1000 + 10 * h.number + p.number,
    h.version,
    1,
    64,
    array['migrate', 'verify', 'check_each_document_against_the_retention_register_of_2019'],
    now() - interval '3 days',
    now() - case when p.number > 4 - h.lost then interval '12 minutes' else interval '0' end,
    now()
from scene_host as h
cross join generate_series(1, 4) as p (number);

-- What each queue has: `entries` a batch; `done` of `batches` have ended, the last one `ago`, one each `each` within the
-- last hour before that and one each `before` earlier; each `failing`-th of the last `failed` has 200 failures.
create temporary table scene_queue as
select
    m.id as migration_id,
    q.*
from (
    values
    ('avatars', 'migrate', 32200, 22900, interval '1 s', interval '0.686 s', interval '13 s', 4200),
    ('avatars', 'verify', 22900, 14400, interval '2 s', interval '3 s', interval '17 s', 0),
    ('covers-stalled', 'migrate', 2000, 500, interval '82 minutes', interval '1 s', interval '60 s', 0),
    ('customer-documents-2019-to-2026-eu-central-1-to-ap-southeast', 'migrate', 2800, 1312, interval '88 minutes',
        interval '3.2 s', interval '90 s', 0),
    ('customer-documents-2019-to-2026-eu-central-1-to-ap-southeast',
        'check_each_document_against_the_retention_register_of_2019', 1312, 312, interval '88 minutes',
        interval '9 s', interval '200 s', 0),
    ('thumbnails', 'migrate', 3000, 3000, interval '105 minutes', interval '1 s', interval '40 s', 0),
    ('thumbnails', 'verify', 3000, 3000, interval '100 minutes', interval '1 s', interval '40 s', 0)
) as q (name, queue_name, batches, done, ago, each, before, failed)
inner join rowferry.migration as m on q.name = m.name;

create temporary table scene_batch as
select
    b.*,
    b.finished_at - interval '3 s' * (1 + b.place % 3) as started_at,
    case
        when b.finished_at is null then 0
        when b.place % 5 = 0 and b.place / 5 < b.failed then 200
        when b.name like 'customer%' and b.queue_name = 'migrate' and b.place < 3 then 80
        when b.name = 'thumbnails' and b.queue_name = 'verify' and b.place < 2 then 20
        else 0
    end as unsettled
from (
    select
        q.*,
        n.number as number,
        q.done - n.number as place,
        case when n.number <= q.done then
            now() - q.ago - least(q.done - n.number, 3600 / extract(epoch from q.each)) * q.each
            - greatest(0, q.done - n.number - 3600 / extract(epoch from q.each)) * q.before
            - case when q.done - n.number < 3600 / extract(epoch from q.each) then interval '0' else interval '6 s' * random() end
        end as finished_at
    from scene_queue as q
    cross join lateral generate_series(1, q.batches) as n (number)
) as b;

insert into rowferry.batch_queue (
    migration_id, queue_name, status, payload, entry_count, attempts, run_after, created_at, started_at, finished_at,
    worker_id, error, migrated, kept, changed, deleted, missing, conflict, failed, bytes
)
select
    b.migration_id,
    b.queue_name,
    case when b.finished_at is null then 'INIT' when b.unsettled > 0 then 'ERROR' else 'DONE' end,
    jsonb_build_object(
        'entries', case
            when b.name = 'avatars' and b.number % 7 = 0 then 'public.covers.path'
            when b.name = 'avatars' then 'public.avatars.path'
            when b.name = 'covers-stalled' then 'public.covers.path'
            when b.name = 'thumbnails' then 'public.thumbnails.path'
            else 'public.documents.path'
        end,
        'first', ((b.number - 1) * 1000 + 1)::text,
        'last', (b.number * 1000)::text
    ),
    1000,
    case when b.finished_at is null then 0 when b.unsettled > 0 then 5 else 1 end,
    now() - interval '3 days',
    now() - interval '3 days',
    b.started_at,
    b.finished_at,
    case when b.finished_at is not null then (
        select w.id
        from scene_host as h
        inner join rowferry.worker as w on h.host = w.host
        where b.place % 100 between h.first_slot and h.last_slot and w.pid % 10 = 1 + b.place / 100 % 4
    ) end,
    case when b.unsettled > 0 then format('%s of 1000 entries are not settled', b.unsettled) end,
    case when b.finished_at is not null and b.queue_name = 'migrate' then 993 - b.unsettled else 0 end,
    case when b.finished_at is null then 0 when b.queue_name = 'migrate' then 4 else 997 - b.unsettled end,
    case when b.finished_at is not null then 3 else 0 end,
    0,
    case when b.unsettled = 200 then 100 when b.unsettled = 80 then 40 else 0 end,
    case when b.unsettled = 200 then 24 when b.unsettled = 80 then 8 when b.unsettled = 20 then 20 else 0 end,
    case when b.unsettled = 200 then 76 when b.unsettled = 80 then 32 else 0 end,
    case when b.finished_at is not null then 1000 * 48213 else 0 end
from scene_batch as b
order by b.finished_at nulls last, b.number;

-- Six reasons: two of an outcome that is missing or in conflict, four that failed.
insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt, failed_at)
select
    q.id,
    ((q.payload ->> 'first')::bigint + n.place - 1)::text,
    format('image/customers/%s/2026/11/original-upload-%s.jpeg', md5(q.id::text), n.place),
    r.outcome,
    r.reason,
    r.error,
    5,
    q.finished_at
from rowferry.batch_queue as q
inner join rowferry.migration as m on q.migration_id = m.id
cross join lateral generate_series(1, q.missing + q.conflict + q.failed) as n (place)
inner join (
    values
    ('missing', 0, 'NoSuchKey', 'The legacy bucket has no object of this key.'),
    ('conflict', 0, 'different object', 'Another object is at the production key: 48,213 bytes, ETag 5d41402abc4b2a76b9719d.'),
    ('conflict', 1, 'ProductionIsNewer', 'The production object was written last, at 2026-11-22 23:41:07 UTC.'),
    ('failed', 0, 'AccessDenied', 'AccessDenied: User: arn:aws:iam::123456789012:user/migration is not authorized to '
        'perform: s3:PutObject on resource: "arn:aws:s3:::production" with an explicit deny in a resource-based policy'),
    ('failed', 1, 'InvalidObjectState', 'InvalidObjectState: the object is archived, restore it first.'),
    ('failed', 2, 'KeyTooLongError', 'KeyTooLongError: Your key is too long.'),
    ('failed', 3, 'EntityTooLarge', 'EntityTooLarge: Your proposed upload exceeds the maximum allowed object size.')
) as r (outcome, kind, reason, error)
    on r.outcome = case
        when n.place <= q.missing then 'missing' when n.place <= q.missing + q.conflict then 'conflict' else 'failed'
    end
    and r.kind = case
        when n.place <= q.missing then 0
        when n.place <= q.missing + q.conflict then case when m.name = 'thumbnails' then 1 else 0 end
        when n.place % 19 < 10 then 0
        when n.place % 19 < 14 then 1
        when n.place % 19 < 17 then 2
        else 3
    end
where q.status = 'ERROR';

-- The ledger: what workers have claimed, and the last attempts that have ended.
insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at, finished_at, verdict, error)
select
    q.id,
    0,
    1,
    q.worker_id,
    q.started_at,
    q.finished_at,
    case when q.status = 'ERROR' then 'ERROR' when q.id % 29 = 0 then 'RETRY' else 'DONE' end,
    coalesce(q.error, case when q.id % 29 = 0 then 'SlowDown: Please reduce your request rate.' end)
from rowferry.batch_queue as q
where q.finished_at > now() - interval '1 hour';
insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at)
select
    b.id,
    0,
    1,
    w.id,
    now() - case when w.host = 'web-09' then interval '50 minutes' else interval '2 s' * (1 + w.number % 4) end
from (
    select
        l.*,
        row_number() over (order by l.host = 'web-09' desc, l.id) as number
    from rowferry.worker as l
    where l.id like '%:live'
) as w
inner join (
    select
        q.id,
        -- Behind those that the scene finishes while it is looked at, as it goes on.
        row_number() over (order by q.queue_name, q.id) as number
    from (
        (
            select b.id, b.queue_name from rowferry.batch_queue as b
            inner join rowferry.migration as m on b.migration_id = m.id
            where m.name = 'avatars' and b.status = 'INIT' and b.queue_name = 'migrate' order by b.id desc limit 40
        )
        union all
        (
            select b.id, b.queue_name from rowferry.batch_queue as b
            inner join rowferry.migration as m on b.migration_id = m.id
            where m.name = 'avatars' and b.status = 'INIT' and b.queue_name = 'verify' order by b.id desc limit 6
        )
    ) as q
) as b on w.number = b.number;

-- A worker has paused one, 88 minutes ago.
select rowferry.pause_migration(
    m.id,
    'AccessDenied: User: arn:aws:iam::123456789012:user/migration is not authorized to perform: s3:PutObject on resource: '
    '"arn:aws:s3:::production-documents-ap-southeast-2/2019/*"'
)
from rowferry.migration as m
where m.name like 'customer%';
update rowferry.migration set paused_at = now() - interval '88 minutes' where paused_at is not null;
update rowferry.event set at = now() - interval '88 minutes';

do $$
begin
    for i in 1 .. 600 loop
        perform rowferry.sum_minutes();
    end loop;
end
$$;
