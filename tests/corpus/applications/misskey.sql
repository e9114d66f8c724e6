-- Misskey 13: three URLs and three keys a row, links to remote files, internal files, and copies of URLs in users.
-- Source: packages/backend/src/models/DriveFile.ts, User.ts. One row in fifty has an object of ours.
create table drive_file (
    id varchar(32) primary key, "createdAt" timestamptz not null default now(), "userHost" varchar(512),
    name varchar(256) not null, "storedInternal" boolean not null, url varchar(1024) not null,
    "thumbnailUrl" varchar(1024), "webpublicUrl" varchar(1024), "accessKey" varchar(256) unique,
    "thumbnailAccessKey" varchar(256) unique, "webpublicAccessKey" varchar(256) unique, "isLink" boolean not null
);
create table "user" (
    id varchar(32) primary key, "updatedAt" timestamptz, username varchar(128) not null, "avatarUrl" varchar(512),
    "bannerUrl" varchar(512)
);
insert into drive_file
select
    md5('f' || n), now(), case when n % 50 > 0 then 'h' || n % 300 || '.example' end, n || '.png', n % 333 = 1,
    case
        when n % 50 = 0 then '{url}/files/' || md5('u' || n) || '.png'
        when n % 333 = 1 then 'https://social.example/files/' || md5('i' || n)
        else 'https://h' || n % 300 || '.example/media/' || n || '.png'
    end,
    case when n % 50 = 0 then '{url}/files/thumbnail-' || md5('t' || n) || '.webp' end,
    case when n % 100 = 0 then '{url}/files/webpublic-' || md5('w' || n) || '.webp' end,
    case when n % 50 = 0 then 'files/' || md5('u' || n) || '.png' else 'x' || n end,
    case when n % 50 = 0 then 'files/thumbnail-' || md5('t' || n) || '.webp' end,
    case when n % 100 = 0 then 'files/webpublic-' || md5('w' || n) || '.webp' end,
    n % 50 > 0
from generate_series(1, 3000) as n;
insert into "user"
select
    md5('p' || n), now(), 'u' || n,
    case when n % 50 = 0 then '{url}/files/' || md5('u' || n) || '.png' else 'https://h' || n % 300 || '.example/a.png' end,
    case when n % 100 = 0 then '{url}/files/webpublic-' || md5('w' || n) || '.webp' end
from generate_series(1, 1000) as n;
-- keys
select 'files/' || md5('u' || n) || '.png' from generate_series(50, 3000, 50) as n
union all
select 'files/thumbnail-' || md5('t' || n) || '.webp' from generate_series(50, 3000, 50) as n
union all
select 'files/webpublic-' || md5('w' || n) || '.webp' from generate_series(100, 3000, 100) as n;
