-- To work: to claim batches and write their verdicts through these functions, and in no other way.
grant execute on function
    rowferry.claim_batch, rowferry.begin_attempt, rowferry.end_attempt, rowferry.lose_attempts,
    rowferry.finish_batch, rowferry.fail_batch, rowferry.split_batch, rowferry.heartbeat, rowferry.deregister_worker,
    rowferry.pause_migration
to {role};
