-- Strapi 4: `url`, a document of smaller versions, and URLs in the Markdown of articles.
-- Source: packages/providers/upload-aws-s3.
create table files (
    id integer primary key, name varchar(255), hash varchar(255), ext varchar(255), mime varchar(255), url varchar(255),
    preview_url varchar(255), provider varchar(255), formats jsonb, created_at timestamp, updated_at timestamp
);
insert into files
select
    n, 'a' || n || '.png', 'a' || n || '_' || left(md5(n::text), 10), '.png', 'image/png',
    '{url}/a' || n || '_' || left(md5(n::text), 10) || '.png', null, 'aws-s3',
    case when n % 2 = 0 then (
        select jsonb_object_agg(size, jsonb_build_object('ext', '.png', 'url', '{url}/' || size || '_a' || n || '_'
            || left(md5(n::text), 10) || '.png'))
        from unnest(array['thumbnail', 'small', 'medium']) as size
    ) end,
    now(), now()
from generate_series(1, 150) as n;
create table articles (
    id integer primary key, title varchar(255), body text, blocks jsonb, created_at timestamp, updated_at timestamp
);
insert into articles
select
    n, 'Article ' || n,
    '## News ' || n || E'\n\nHello. ![photo]({url}/a' || n || '_' || left(md5(n::text), 10) || '.png) See '
        || 'https://example.org/news/' || n || '.' || case when n % 2 = 0 then E'\n\n<img src="{url}/medium_a' || n || '_'
        || left(md5(n::text), 10) || '.png">' else '' end,
    null, now(), now()
from generate_series(1, 100) as n;
-- keys
select hash || ext from files
union all
select size || '_' || hash || ext from files, unnest(array['thumbnail', 'small', 'medium']) as size
where formats is not null;
