-- Whether the owner of rowferry.heartbeat may know how far replicas are behind: all others see that there are some, no more.
select pg_has_role(
    coalesce(
        (
            select p.proowner
            from pg_proc as p
            inner join pg_namespace as n on p.pronamespace = n.oid
            where n.nspname = 'rowferry' and p.proname = 'heartbeat'
        ),
        (select r.oid from pg_roles as r where r.rolname = current_user)
    ),
    'pg_read_all_stats',
    'usage'
) as sees_replicas
