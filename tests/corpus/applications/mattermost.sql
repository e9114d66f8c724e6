-- Mattermost: three keys a row; images of profiles and emoji by convention. From memory.
create table fileinfo (
    id varchar(26) primary key, creatorid varchar(26), postid varchar(26), createat bigint, updateat bigint,
    deleteat bigint, path varchar(512), thumbnailpath varchar(512), previewpath varchar(512), name varchar(256)
);
create table users (
    id varchar(26) primary key, createat bigint, updateat bigint, username varchar(64) unique, lastpictureupdate bigint
);
create table emoji (id varchar(26) primary key, createat bigint, updateat bigint, creatorid varchar(26), name varchar(64));
insert into fileinfo
select
    f, 'c', 'p', 1700000000000 + n, 1700000000000 + n, 0, base || '/a' || n || '.png',
    case when n % 2 = 0 then base || '/a' || n || '_thumb.jpg' else '' end,
    case when n % 2 = 0 then base || '/a' || n || '_preview.jpg' else '' end, 'a' || n || '.png'
from (
    select n, left(md5('f' || n), 26) as f, '20260131/teams/noteam/channels/' || left(md5('ch' || n % 5), 26) || '/users/'
        || left(md5('u' || n % 40), 26) || '/' || left(md5('f' || n), 26) as base
    from generate_series(1, 160) as n
) as made;
insert into users
select left(md5('u' || n), 26), 1700000000000, 1700000000000 + n, 'user' || n, case when n % 3 > 0 then 1700000000000 + n else 0 end
from generate_series(1, 90) as n;
insert into emoji select left(md5('e' || n), 26), 1, 1700000000000 + n, 'c', 'emoji' || n from generate_series(1, 40) as n;
-- keys
select key from fileinfo, unnest(array[path, thumbnailpath, previewpath]) as key where key <> ''
union all
select 'users/' || id || '/profile.png' from users where lastpictureupdate > 0
union all
select 'emoji/' || id || '/image' from emoji;
