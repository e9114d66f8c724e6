-- Pixelfed: keys of local media and their thumbnails, links of remote ones, avatars with a default that is no object.
create table media (
    id bigint primary key, status_id bigint, profile_id bigint, user_id bigint, media_path varchar(255) not null,
    thumbnail_path varchar(255), cdn_url varchar(255), remote_media boolean not null default false,
    remote_url varchar(255), mime varchar(255), size integer, created_at timestamp, updated_at timestamp
);
insert into media
select
    n, n * 7, n % 20 + 1, n % 20 + 1,
    case when n % 3 = 0 then 'https://pixelfed.example.org/storage/m/' || md5('r' || n) || '.jpg'
        else 'public/m/_v2/' || (n % 20 + 1) * 1000003 || '/' || left(md5(n::text), 9) || '-' || left(md5('x' || n), 6)
            || '/' || md5('f' || n) || '.jpg' end,
    case when n % 3 = 0 then null
        else 'public/m/_v2/' || (n % 20 + 1) * 1000003 || '/' || left(md5(n::text), 9) || '-' || left(md5('x' || n), 6)
            || '/' || md5('f' || n) || '_thumb.jpg' end,
    case when n % 3 = 0 then null
        else '{url}/public/m/_v2/' || (n % 20 + 1) * 1000003 || '/' || left(md5(n::text), 9) || '-'
            || left(md5('x' || n), 6) || '/' || md5('f' || n) || '.jpg' end,
    n % 3 = 0, case when n % 3 = 0 then 'https://pixelfed.example.org/storage/m/' || md5('r' || n) || '.jpg' end,
    'image/jpeg', 1000 + n, now(), now()
from generate_series(1, 240) as n;
create table avatars (
    id bigint primary key, profile_id bigint, media_path varchar(255), cdn_url varchar(255), is_remote boolean,
    last_fetched_at timestamp
);
insert into avatars
select
    n, n, case when n % 4 = 0 then 'public/avatars/default.jpg' else 'public/avatars/' || n || '/' || md5('a' || n) || '.jpg' end,
    case when n % 4 = 0 then null else '{url}/public/avatars/' || n || '/' || md5('a' || n) || '.jpg' end, false, null
from generate_series(1, 60) as n;
-- keys
select media_path from media where not remote_media
union select thumbnail_path from media where thumbnail_path is not null
union select media_path from avatars where media_path not like '%default%';
