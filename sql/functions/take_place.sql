-- rowferry.take_place(p_queue_id integer, p_max_in_hand integer)
--   Takes one of the `max_in_hand` places of a queue until the transaction ends; false where all of them are taken.
--   A place is an advisory lock of two integers, 1919907686 ("rowf") and 1024 * queue + place, counted from 0: it dies
--   with its session as the claim does, and `rollback to savepoint` gives it back. A transaction that claims again gets
--   the batch that it has, and its place too.
--   Sessions begin at different places, so that a queue that is nearly full is not searched from its full end.
--   Writes: nothing. Called by: rowferry.claim_batch.
create or replace function rowferry.take_place(p_queue_id integer, p_max_in_hand integer)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_class constant integer := 1919907686;
    v_first constant integer := pg_backend_pid() % p_max_in_hand;
begin
    for v_turn in 0..p_max_in_hand - 1 loop
        if pg_try_advisory_xact_lock(v_class, 1024 * p_queue_id + (v_first + v_turn) % p_max_in_hand) then
            return true;
        end if;
    end loop;
    return false;
end;
$$;
