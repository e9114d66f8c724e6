-- 0011_enqueue: an enqueue learns the revision of its plan, with which its batches have to agree in the end.

drop function if exists rowferry.register_migration(text, jsonb);
