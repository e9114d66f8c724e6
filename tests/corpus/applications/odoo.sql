-- Odoo 16 with OCA's fs_attachment: `store_fname` is the code of a storage, then the key; `fs_filename` the name alone.
-- Source: OCA/storage, fs_attachment/models/ir_attachment.py. Attachments with the same contents share an object.
create table fs_storage (id integer primary key, code varchar not null unique, protocol varchar);
create table ir_attachment (
    id integer primary key, name varchar not null, res_model varchar, res_id integer, type varchar not null,
    store_fname varchar, fs_storage_id integer references fs_storage (id), fs_storage_code varchar,
    fs_filename varchar, checksum varchar(40), db_datas bytea, write_date timestamp
);
insert into fs_storage values (1, 's3old', 's3'), (2, 'local', 'file');
insert into ir_attachment
select
    n, n || '.pdf', 'res.partner', n, 'binary',
    case
        when n % 9 = 0 then null
        when n % 3 = 0 then 's3old://file-' || n || '-0.pdf'
        when n % 7 = 0 then 'local://ab/' || n
        else 's3old://' || left(md5('c' || n % 200), 2) || '/' || substr(md5('c' || n % 200), 3, 2) || '/file-' || n % 200
            || '-0.pdf'
    end,
    case when n % 9 > 0 then 1 end, case when n % 9 > 0 then 's3old' end, 'file-' || n || '-0.pdf', md5(n::text), null,
    now() - n * interval '1 hour'
from generate_series(1, 500) as n;
-- keys
select split_part(store_fname, '://', 2) from ir_attachment where store_fname like 's3old://%' group by 1;
