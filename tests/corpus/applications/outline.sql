-- Outline: keys of attachments, avatars by URL beside those of other sites, markdown that names attachments by id.
create table attachments (
    id uuid primary key, key varchar(4096) not null, "contentType" varchar(255), size bigint, acl varchar(255),
    "documentId" uuid, "userId" uuid not null, "teamId" uuid, "createdAt" timestamptz, "updatedAt" timestamptz,
    "expiresAt" timestamptz
);
insert into attachments
select
    md5('a' || n)::uuid,
    case when n % 2 = 0 then 'uploads/' else 'public/' end || md5('u' || n % 10)::uuid || '/' || md5('a' || n)::uuid || '/plan ' || n || '.png',
    'image/png', 9, 'private', null, md5('u' || n % 10)::uuid, md5('t')::uuid, now(), now(), null
from generate_series(1, 180) as n;
create table users (
    id uuid primary key, email varchar(255), name varchar(255), "avatarUrl" varchar(4096), "createdAt" timestamptz, "updatedAt" timestamptz
);
insert into users
select
    md5('u' || n)::uuid, 'u' || n || '@example.org', 'u' || n,
    case when n % 3 = 0 then 'https://www.gravatar.com/avatar/' || md5('g' || n)
        when n % 3 = 1 then '{url}/avatars/' || md5('u' || n)::uuid || '/' || md5('v' || n)::uuid || '/me.png'
    end, now(), now()
from generate_series(1, 90) as n;
create table documents (id uuid primary key, title varchar(255), text text, "updatedAt" timestamptz);
insert into documents
select md5('d' || n)::uuid, 'doc ' || n, 'See ![](/api/attachments.redirect?id=' || md5('a' || n)::uuid || ') here.', now()
from generate_series(1, 60) as n;
-- keys
select key from attachments
union select replace("avatarUrl", '{url}/', '') from users where "avatarUrl" like '{url}/%';
