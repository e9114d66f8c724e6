-- Dataverse: the key needs the authority and the identifier of the dataset, which is the owner's row of the same table;
-- thumbnails beside a file, exports of a dataset in its folder. Source: S3AccessIO.java; columns from memory.
create table dvobject (
    id serial primary key, dtype varchar(31), authority varchar(255), identifier varchar(255), protocol varchar(255),
    owner_id bigint references dvobject (id), storageidentifier varchar(255), createdate timestamp not null,
    modificationtime timestamp not null, previewimageavailable boolean
);
create table datafile (id bigint primary key references dvobject (id), contenttype varchar(255), filesize bigint);
insert into dvobject
select
    n, 'Dataset', '10.5072', 'FK2/' || upper(left(md5('d' || n), 6)), 'doi', null,
    's3://10.5072/FK2/' || upper(left(md5('d' || n), 6)), now(), now(), false
from generate_series(1, 30) as n;
insert into dvobject
select
    n, 'DataFile', null, null, null, n % 30 + 1,
    's3://{bucket}:' || left(md5('t' || n), 11) || '-' || left(md5('f' || n), 12), now(), now(), n % 3 = 0
from generate_series(101, 300) as n;
insert into datafile select id, 'text/plain', id from dvobject where dtype = 'DataFile';
-- keys
select o.authority || '/' || o.identifier || '/' || split_part(f.storageidentifier, ':', 3) || suffix
from dvobject as f join dvobject as o on o.id = f.owner_id, unnest(array['', '.thumb48']) as suffix
where suffix = '' or f.previewimageavailable
union all
select authority || '/' || identifier || '/export_' || format || '.cached'
from dvobject, unnest(array['dcterms', 'ddi']) as format where dtype = 'Dataset';
