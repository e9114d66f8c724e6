-- To work: to claim batches and write their verdicts through these functions, and in no other way.
grant execute on function
    rowferry.claim_batch, rowferry.claim_more, rowferry.begin_attempt, rowferry.begin_attempts,
    rowferry.end_attempt, rowferry.lose_attempts, rowferry.finish_batch, rowferry.finish_idle, rowferry.fail_batch,
    rowferry.split_off, rowferry.beat, rowferry.sign_off
to {role};
