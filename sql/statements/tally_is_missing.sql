-- Whether there are batches and no tally of them: that of a queue which is older than the tally.
select
    not exists (select from rowferry.batch_tally)
    and exists (select from rowferry.batch_queue) as tally_is_missing
