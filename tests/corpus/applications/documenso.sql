-- Documenso: `data` holds a key, or the whole file in base64, as `type` says. Source: packages/prisma/schema.prisma.
create type "DocumentDataType" as enum ('S3_PATH', 'BYTES', 'BYTES_64');
create table "DocumentData" (
    id text primary key, type "DocumentDataType" not null, data text not null, "initialData" text not null
);
insert into "DocumentData"
select
    'c' || n, (case when n % 4 = 0 then 'BYTES_64' else 'S3_PATH' end)::"DocumentDataType",
    case when n % 4 = 0 then repeat('JVBERi0xLjQKJeLjz9MKMyAwIG9iago8PC9MZW5ndGgg', 40) else md5(n::text) || '/doc.pdf' end,
    case
        when n % 4 = 0 then repeat('JVBERi0xLjQKJeLjz9MKMyAwIG9iago8PC9MZW5ndGgg', 40)
        when n % 2 = 0 then md5(n::text) || '/doc.pdf'
        else md5('i' || n) || '/doc.pdf'
    end
from generate_series(1, 200) as n;
-- keys
select data from "DocumentData" where type = 'S3_PATH'
union
select "initialData" from "DocumentData" where type = 'S3_PATH';
