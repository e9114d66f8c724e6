-- Baserow: keys of three columns, thumbnails by convention, names of files in users' tables. Source: user_files/models.py.
create table core_userfile (
    id integer primary key, original_name varchar(255), original_extension varchar(64), "unique" varchar(32), size bigint,
    mime_type varchar(127), is_image boolean, sha256_hash varchar(64), uploaded_at timestamptz
);
create table database_table_7 (id integer primary key, field_12 jsonb, field_13 text, updated_on timestamptz);
insert into core_userfile
select
    n, 'photo ' || n || '.png', case when n % 3 = 0 then 'pdf' else 'png' end, md5('u' || n), n, 'image/png', n % 3 > 0,
    md5('s' || n) || md5('t' || n), now()
from generate_series(1, 150) as n;
insert into database_table_7
select
    id,
    jsonb_build_array(jsonb_build_object(
        'name', "unique" || '_' || sha256_hash || '.' || original_extension, 'size', size,
        'visible_name', original_name
    )),
    'note', now()
from core_userfile where id % 2 = 0;
-- keys
select 'user_files/' || "unique" || '_' || sha256_hash || '.' || original_extension from core_userfile
union all
select 'thumbnails/' || size || '/' || "unique" || '_' || sha256_hash || '.' || original_extension
from (select "unique", sha256_hash, original_extension from core_userfile where is_image) as f,
    unnest(array['tiny', 'small', 'card_cover']) as size;
