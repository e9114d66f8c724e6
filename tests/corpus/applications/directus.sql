-- Directus 10: `filename_disk` is the key, `storage` the name of its storage; variants, made on demand, have no row.
-- Source: api/src/services/assets.ts.
create table directus_files (
    id uuid primary key, storage varchar(255) not null, filename_disk varchar(255), filename_download varchar(255),
    title varchar(255), type varchar(255), uploaded_on timestamptz, modified_on timestamptz
);
insert into directus_files
select
    md5('d' || n)::uuid, case when n % 10 = 0 then 'local' else 's3' end, md5('d' || n)::uuid || '.jpg', n || '.jpg',
    'Photo ' || n, 'image/jpeg', now(), now()
from generate_series(1, 120) as n;
-- keys
select filename_disk from directus_files where storage = 's3'
union all
select id || '__' || md5(id::text) || '.jpg' from directus_files where storage = 's3' and title like '%1';
