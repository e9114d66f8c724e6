-- DSpace 7: the digits of an internal id, sliced into three folders. Source: S3BitStoreService.java.
create table bitstream (
    uuid uuid primary key, bitstream_id integer, checksum varchar(64), checksum_algorithm varchar(32), deleted boolean,
    internal_id varchar(256), size_bytes bigint, sequence_id integer, store_number integer
);
insert into bitstream
select
    md5('b' || n)::uuid, n, md5(n::text), 'MD5', n % 20 = 0, (n * 98765432198765432198765432198765::numeric + 1e37)::text,
    n, n, 1
from generate_series(1, 200) as n;
-- keys
select
    'assets/' || left(internal_id, 2) || '/' || substr(internal_id, 3, 2) || '/' || substr(internal_id, 5, 2) || '/'
    || internal_id
from bitstream;
