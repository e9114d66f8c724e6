-- Takes one of the `max_claimed` places of a queue until the transaction ends; false where all of them are taken. A
-- place is an advisory lock of two integers, 1919907686 ("rowf") and 1024 * queue + place, counted from 0: it dies with
-- its session as the claim does, and `rollback to savepoint` gives it back. Sessions begin at different places, so that
-- a queue that is nearly full is not searched from its full end.
-- Writes: nothing. Called by: rowferry.claim_batch.
create or replace function rowferry.take_place(p_queue_id integer, p_max_claimed integer)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    for v_try in 0..p_max_claimed - 1 loop
        if pg_try_advisory_xact_lock(1919907686, 1024 * p_queue_id + (pg_backend_pid() + v_try) % p_max_claimed) then
            return true;
        end if;
    end loop;
    return false;
end;
$$;
