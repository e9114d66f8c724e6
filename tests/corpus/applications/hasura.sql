-- Hasura storage: the uuid of a row is the key of its object. From memory.
create schema storage;
create table storage.files (
    id uuid primary key default gen_random_uuid(), created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(), bucket_id text not null default 'default', name text, size integer,
    mime_type text, etag text, is_uploaded boolean default false
);
insert into storage.files (id, name, size, mime_type, etag, is_uploaded)
select md5('h' || n)::uuid, n || '.png', n, 'image/png', md5(n::text), n % 15 > 0 from generate_series(1, 200) as n;
-- keys
select id::text from storage.files where is_uploaded;
