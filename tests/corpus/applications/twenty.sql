-- Twenty: a path without the workspace's folder, which objects have; pictures by a path or a link of another site.
create table workspace (id uuid primary key, "displayName" varchar, logo varchar);
insert into workspace values (md5('w')::uuid, 'acme', 'original/logo.png');
create table attachment (
    id uuid primary key, name text, "fullPath" text, type text, "createdAt" timestamptz, "updatedAt" timestamptz, "deletedAt" timestamptz
);
insert into attachment
select md5('a' || n)::uuid, 'f' || n || '.pdf', 'attachment/' || md5('a' || n)::uuid || '.pdf', 'TextDocument', now(), now(), null
from generate_series(1, 200) as n;
create table person (id uuid primary key, "nameFirstName" text, "avatarUrl" text, "updatedAt" timestamptz);
insert into person
select
    md5('p' || n)::uuid, 'p' || n,
    case when n % 2 = 0 then 'person-picture/original/' || md5('q' || n)::uuid || '.png'
        when n % 5 = 0 then 'https://media.example.com/in/' || n || '.jpg' else '' end, now()
from generate_series(1, 150) as n;
-- keys
select 'workspace-' || md5('w')::uuid || '/' || "fullPath" from attachment
union select 'workspace-' || md5('w')::uuid || '/' || "avatarUrl" from person where "avatarUrl" like 'person-picture/%';
