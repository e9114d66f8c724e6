-- 0007_requeue_one: a requeue can be of one migration; the function that did not ask makes room for the one that does.

drop function if exists rowferry.requeue(bigint, text);
