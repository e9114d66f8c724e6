-- Akkoma, Pleroma: activities as documents, `url` a list of links, with percent-encoded names and a query; most remote.
create table objects (id bigint primary key, data jsonb not null, inserted_at timestamp, updated_at timestamp);
create table users (id uuid primary key, nickname text, avatar jsonb, banner jsonb, updated_at timestamp);
insert into objects
select
    n,
    jsonb_build_object(
        'id', 'https://h' || n % 300 || '.example/o/' || n, 'type', 'Note', 'content', '<p>hello</p>',
        'attachment', jsonb_build_array(jsonb_build_object(
            'type', 'Document', 'name', n || '.png',
            'url', jsonb_build_array(jsonb_build_object(
                'type', 'Link', 'mediaType', 'image/png',
                'href', case
                    when n % 40 = 0 then '{url}/' || md5('o' || n) || '/a%20b.png?name=a%20b.png'
                    else 'https://h' || n % 300 || '.example/media/' || n || '.png'
                end
            ))
        ))
    ),
    now(), now()
from generate_series(1, 2000) as n;
insert into users
select
    md5('u' || n)::uuid, 'u' || n,
    jsonb_build_object('type', 'Image', 'url', jsonb_build_array(jsonb_build_object('href', case
        when n % 25 = 0 then '{url}/' || md5('a' || n) || '.png' else 'https://h' || n || '.example/a.png'
    end))),
    jsonb_build_object('url', jsonb_build_array(jsonb_build_object('href', 'https://h' || n || '.example/b.png'))),
    now()
from generate_series(1, 500) as n;
-- keys
select md5('o' || n) || '/a b.png' from generate_series(40, 2000, 40) as n
union all
select md5('a' || n) || '.png' from generate_series(25, 500, 25) as n;
