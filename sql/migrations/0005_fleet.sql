-- 0005_fleet: a heartbeat tells the worker about the others; the function that returned nothing makes room for it.

drop function if exists rowferry.heartbeat(text, text, integer, text, integer, integer, text []);
