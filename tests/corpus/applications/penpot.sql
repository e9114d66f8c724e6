-- Penpot: the uuid alone, in slices; `backend` says where. Source: backend/src/app/storage/impl.clj.
create table storage_object (
    id uuid primary key default gen_random_uuid(), created_at timestamptz not null default now(), deleted_at timestamptz,
    size bigint not null default 0, backend text not null, metadata bytea, touched_at timestamptz
);
insert into storage_object (id, size, backend)
select md5('p' || n)::uuid, n, case when n % 10 = 0 then 'fs' else 's3' end from generate_series(1, 200) as n;
-- keys
select left(id::text, 2) || '/' || substr(id::text, 3, 2) || '/' || substr(id::text, 5)
from storage_object where backend = 's3';
