-- Synapse with s3_storage_provider: slices of media ids, thumbnails in a table without a primary key.
-- Source: synapse/media/filepath.py. Its unique ids may be null, so no [[entries]] can name the rows.
create table local_media_repository (
    media_id text unique, media_type text, media_length integer, created_ts bigint, upload_name text, user_id text
);
create table local_media_repository_thumbnails (
    media_id text, thumbnail_width integer, thumbnail_height integer, thumbnail_type text, thumbnail_method text
);
insert into local_media_repository
select left(translate(md5('s' || n), '0123456789', 'ABCDEFGHIJ'), 24), 'image/png', n, 1, n || '.png', '@u:example'
from generate_series(1, 120) as n;
insert into local_media_repository_thumbnails
select media_id, 32, 32, 'image/png', 'crop' from local_media_repository;
-- keys
select 'local_content/' || left(media_id, 2) || '/' || substr(media_id, 3, 2) || '/' || substr(media_id, 5)
from local_media_repository
union all
select
    'local_thumbnails/' || left(media_id, 2) || '/' || substr(media_id, 3, 2) || '/' || substr(media_id, 5)
    || '/32-32-image-png-crop'
from local_media_repository;
