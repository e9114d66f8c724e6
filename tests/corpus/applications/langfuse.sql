-- Langfuse media: the bucket's name in a column, no primary key, presigned URLs in what users paste. From memory.
create table media (
    id text not null, sha_256_hash char(44) not null, project_id text not null, created_at timestamptz default now(),
    updated_at timestamptz default now(), uploaded_at timestamptz, upload_http_status integer, bucket_path text not null,
    bucket_name text not null, content_type text not null, content_length bigint not null
);
create unique index media_project_id_id_key on media (project_id, id);
create table observations (id text primary key, project_id text not null, output text, updated_at timestamptz);
insert into media
select
    'm' || n, rpad(md5(n::text), 44, '='), 'p' || n % 5, now(), now(), now(), 200,
    'media/p' || n % 5 || '/m' || n || '.png', '{bucket}', 'image/png', n
from generate_series(1, 350) as n;
insert into observations
select
    'o' || n, 'p' || n % 5,
    '{url}/media/p' || n % 5 || '/m' || n || '.png?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=' || md5(n::text),
    now()
from generate_series(1, 60) as n;
-- keys
select bucket_path from media;
