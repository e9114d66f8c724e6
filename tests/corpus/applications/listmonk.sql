-- listmonk: file names below a path of the settings, thumbnails, and URLs within the HTML of campaigns and templates.
-- Source: schema.sql, cmd/media.go (both read).
create type campaign_status as enum ('draft', 'running', 'finished');
create table templates (id serial primary key, name text not null, body text not null, is_default boolean not null default false, created_at timestamptz default now(), updated_at timestamptz default now());
create table campaigns (
    id serial primary key, uuid uuid not null unique, name text not null, subject text not null, from_email text not null, body text not null,
    altbody text, status campaign_status not null default 'draft', tags varchar(100) [], created_at timestamptz default now(), updated_at timestamptz default now()
);
create table media (
    id serial primary key, uuid uuid not null unique, provider text not null default '', filename text not null, content_type text not null default 'image/png',
    thumb text not null, meta jsonb not null default '{}', created_at timestamptz default now()
);
create table settings (key text not null unique, value jsonb not null default '{}', updated_at timestamptz default now());
create table links (id serial primary key, uuid uuid not null unique, url text not null unique, created_at timestamptz default now());
insert into media (uuid, provider, filename, thumb, meta)
select md5('m' || n)::uuid, case when n % 12 = 0 then 'filesystem' else 's3' end, 'photo-' || n || '_' || left(md5('x' || n), 6) || '.png',
    'thumb_photo-' || n || '_' || left(md5('x' || n), 6) || '.png', '{"width": 800, "height": 600}'
from generate_series(1, 150) as n;
insert into campaigns (uuid, name, subject, from_email, body, status, tags)
select md5('c' || n)::uuid, 'Campaign ' || n, 'News ' || n, 'news@example.org',
    '<h1>News ' || n || '</h1><p><img src="{url}/listmonk/photo-' || n || '_' || left(md5('x' || n), 6) || '.png" alt="x" /></p>'
    || '<p><a href="https://example.org/shop/' || n || '?utm=1">Shop</a></p>'
    || case when n % 2 = 0 then '<img src=''{url}/listmonk/photo-' || n + 1 || '_' || left(md5('x' || n + 1), 6) || '.png''>' else '' end,
    'finished', array['news']
from generate_series(1, 80) as n where n % 12 > 0 and (n + 1) % 12 > 0;
insert into templates (name, body, is_default)
select 'Template ' || n, '<!doctype html><html><body background="{url}/listmonk/photo-5_' || left(md5('x5'), 6) || '.png">{{ template "content" . }}</body></html>', n = 1
from generate_series(1, 6) as n;
insert into settings values ('app.root_url', '"https://news.example.org"'), ('upload.provider', '"s3"'), ('upload.s3.bucket', '"{bucket}"'), ('upload.s3.bucket_path', '"/listmonk"');
insert into links (uuid, url) select md5('l' || n)::uuid, 'https://example.org/shop/' || n from generate_series(1, 80) as n;
-- keys
select 'listmonk/' || filename from media where provider = 's3'
union all
select 'listmonk/' || thumb from media where provider = 's3';
