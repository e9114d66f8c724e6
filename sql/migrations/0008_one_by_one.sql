-- 0008_one_by_one: every batch is claimed, tried and finished by itself; what did so for several at once is gone. The
-- beginning of an attempt tells more of what lies behind it, and makes room for the function that does.

drop function if exists rowferry.claim_more(bigint, integer);
drop function if exists rowferry.begin_attempts(bigint [], integer [], text);
drop function if exists rowferry.finish_idle(bigint [], bigint []);
drop function if exists rowferry.begin_attempt(bigint, integer, text);
