-- Canvas LMS: attachments below a namespace and the id, thumbnails with ids of their own; copies name their root.
-- Source of the model: app/models/attachment.rb; the rule of keys is from memory.
create table attachments (
    id bigint primary key, context_id bigint, context_type varchar(255), filename varchar(255), namespace varchar(255),
    root_attachment_id bigint, file_state varchar(255), md5 varchar(255), updated_at timestamp, display_name varchar(255)
);
create table thumbnails (
    id bigint primary key, parent_id bigint, filename varchar(255), thumbnail varchar(255), namespace varchar(255),
    updated_at timestamp
);
insert into attachments
select
    n, n % 9, 'Course', 'file' || n || '.pdf', case when n % 3 = 0 then 'account_2' else 'account_1' end,
    case when n % 5 = 0 then n - 1 end, 'available', md5(n::text), now(), 'File ' || n
from generate_series(1, 240) as n;
insert into thumbnails
select n, n + 3, 'file' || n || '_thumb.png', 'thumb', case when n % 3 = 0 then 'account_2' else 'account_1' end, now()
from generate_series(1001, 1060) as n;
-- keys
select namespace || '/attachments/' || id || '/' || filename from attachments where root_attachment_id is null
union all
select namespace || '/thumbnails/' || id || '/' || filename from thumbnails;
