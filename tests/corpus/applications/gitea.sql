-- Gitea 1.21: keys of sliced ids and digests in six folders. Source of attachments: models/repo/attachment.go.
create table attachment (
    id bigint primary key, uuid uuid unique, repo_id bigint, name varchar(255), size bigint, created_unix bigint
);
create table lfs_meta_object (
    id bigint primary key, oid varchar(255) not null, size bigint, repository_id bigint, updated_unix bigint
);
create table package_blob (
    id bigint primary key, size bigint, hash_md5 char(32), hash_sha1 char(40), hash_sha256 char(64), created_unix bigint
);
create table "user" (id bigint primary key, lower_name varchar(255) unique, avatar varchar(2048), use_custom_avatar boolean);
create table repository (id bigint primary key, owner_id bigint, name varchar(255), avatar varchar(64));
create table action_artifact (id bigint primary key, storage_path varchar(255), artifact_name varchar(255), status bigint);
insert into attachment select n, md5('a' || n)::uuid, n % 7, n || '.png', n, 1700000000 + n from generate_series(1, 150) n;
insert into lfs_meta_object
select n, md5('l' || n) || md5('m' || n), n, n % 7, 1700000000 + n from generate_series(1, 150) n;
insert into package_blob
select n, n, md5('p' || n), md5('p' || n) || left(md5('q' || n), 8), md5('p' || n) || md5('r' || n), 1700000000
from generate_series(1, 150) n;
insert into "user" select n, 'user' || n, md5('v' || n), true from generate_series(1, 60) n;
insert into repository select n, n % 7, 'repo' || n, case when n % 2 = 0 then n || '-' || md5('w' || n) else '' end
from generate_series(1, 60) n;
insert into action_artifact
select n, n || '/' || n % 10 || '/' || 1700000000 + n || '.chunk.gz', 'logs', 2 from generate_series(1, 60) n;
-- keys
select 'attachments/' || left(uuid::text, 1) || '/' || substr(uuid::text, 2, 1) || '/' || uuid from attachment
union all
select 'lfs/' || left(oid, 2) || '/' || substr(oid, 3, 2) || '/' || substr(oid, 5) from lfs_meta_object
union all
select 'packages/' || left(hash_sha256, 2) || '/' || substr(hash_sha256, 3, 2) || '/' || hash_sha256 from package_blob
union all
select 'avatars/' || avatar from "user"
union all
select 'repo-avatars/' || avatar from repository where avatar <> ''
union all
select 'actions_artifacts/' || storage_path from action_artifact;
