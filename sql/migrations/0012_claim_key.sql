-- 0012_claim_key: what a claim is sealed with, so that a batch is finished by the transaction that has claimed it.

create table rowferry.claim_key (
    key uuid not null default gen_random_uuid(),
    constraint claim_key_pkey primary key (key)
);
comment on table rowferry.claim_key is
'One row that only the functions read. Whoever knows it can finish batches that others hold; it opens nothing else.';
insert into rowferry.claim_key default values;
