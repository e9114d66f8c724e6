-- One session speaks for the ledger of a worker; behind PgBouncer (is_local), one transaction.
select
    case
        when %(is_local)s then pg_advisory_xact_lock(hashtextextended('rowferry.ledger ' || %(worker)s, 0))
        else pg_advisory_lock(hashtextextended('rowferry.ledger ' || %(worker)s, 0))
    end
