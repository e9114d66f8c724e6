-- Whether there are batches and no tally of them: the queue was restored without its triggers.
select
    not exists (select from rowferry.batch_tally)
    and exists (select from rowferry.batch_queue) as tally_is_missing
