-- NocoDB: a schema a base, users' own names of tables and columns, lists of attachments as JSON in text; some cells hold
-- what was imported before the column became one of attachments. From memory.
create schema p_k3x9;
create table p_k3x9."Clients & Deals" (
    id integer primary key, "Title" text, "Contract (PDF)" text, "Photos" text, updated_at timestamp
);
insert into p_k3x9."Clients & Deals"
select
    n, 'Deal ' || n,
    case
        when n % 20 = 0 then 'see mail of ' || n || '.pdf'
        when n % 33 = 0 then ''
        when n % 57 = 0 then '[scan ' || n || '.pdf]'
        else '[{"url":"{url}/nc/uploads/p/contract%20' || n || '.pdf","title":"contract ' || n
            || '.pdf","mimetype":"application/pdf","size":1}]'
    end,
    case when n % 2 = 0 then '[{"path":"nc/uploads/p/a' || n || '.png"},{"path":"nc/uploads/p/b' || n || '.png"}]' end,
    now()
from generate_series(1, 300) as n;
-- keys
select 'nc/uploads/p/contract ' || n || '.pdf' from generate_series(1, 300) as n
where n % 20 > 0 and n % 33 > 0 and n % 57 > 0
union all
select 'nc/uploads/p/' || side || n || '.png' from generate_series(2, 300, 2) as n, unnest(array['a', 'b']) as side;
