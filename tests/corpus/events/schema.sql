-- A log of events with a recording each, partitioned by date: the number repeats in other partitions.

create table events (
    number bigint not null,
    day date not null,
    camera text not null,
    recording text,
    primary key (number, day)
) partition by range (day);

create table events_2026_01 partition of events for values from ('2026-01-01') to ('2026-02-01');
create table events_2026_02 partition of events for values from ('2026-02-01') to ('2026-03-01');
create table events_rest partition of events default;
