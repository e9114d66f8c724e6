-- A worker whose ledger's session was lost may find it still at work: what it was asked for could yet be committed,
-- behind the back of what is said from now on. So it is ended, by the lock that it holds; `lock_ledger` waits for it.
select pg_terminate_backend(l.pid)
from pg_locks as l
inner join pg_stat_activity as a on l.pid = a.pid
where
    l.locktype = 'advisory' and l.granted and l.objsubid = 1
    and l.database = (select d.oid from pg_database as d where d.datname = current_database())
    and (l.classid::bigint << 32) | l.objid::bigint = hashtextextended('rowferry.ledger ' || %(worker)s, 0)
    and l.pid <> pg_backend_pid()
    and a.usename = session_user
