-- Label Studio: s3:// URLs in documents, in lists of them, and in HTML. From memory.
create table task (id integer primary key, data jsonb not null, meta jsonb, updated_at timestamptz, is_labeled boolean);
create table io_storages_s3importstorage (id integer primary key, title varchar(256), bucket text, prefix text);
insert into io_storages_s3importstorage values (1, 'Images', '{bucket}', 'images/');
insert into task
select
    n,
    case
        when n % 3 = 0 then jsonb_build_object('images', jsonb_build_array(
            's3://{bucket}/images/a' || n || '.png', 's3://{bucket}/images/b' || n || '.png'))
        when n % 10 = 1 then jsonb_build_object('html', '<p>Which?</p><img src="s3://{bucket}/images/a' || n || '.png">')
        else jsonb_build_object('image', 's3://{bucket}/images/a' || n || '.png', 'text', 'words')
    end,
    null, now(), false
from generate_series(1, 150) as n;
-- keys
select 'images/a' || n || '.png' from generate_series(1, 150) as n
union all
select 'images/b' || n || '.png' from generate_series(3, 150, 3) as n;
