-- Supabase Storage: tenant, bucket, name and version make the key. Source: migrations/tenant/0002-storage-schema.sql.
create schema storage;
create table storage.buckets (id text primary key, name text not null, public boolean, updated_at timestamptz);
create table storage.objects (
    id uuid primary key default gen_random_uuid(), bucket_id text references storage.buckets (id), name text,
    owner uuid, created_at timestamptz default now(), updated_at timestamptz default now(), metadata jsonb, version text,
    path_tokens text [] generated always as (string_to_array(name, '/')) stored
);
insert into storage.buckets select b, b, true, now() from unnest(array['avatars', 'documents']) as b;
insert into storage.objects (id, bucket_id, name, metadata, version)
select
    md5('o' || n)::uuid, case when n % 2 = 0 then 'avatars' else 'documents' end,
    case when n % 2 = 0 then md5('u' || n)::uuid || '/me.png' else 'team ' || n % 3 || '/2026/report ' || n || '.pdf' end,
    '{"size": 7, "mimetype": "image/png"}', md5('v' || n)::uuid
from generate_series(1, 200) as n;
-- keys
select 'stub-tenant/' || bucket_id || '/' || name || '/' || version from storage.objects;
