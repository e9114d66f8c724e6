alter table {table} add column {key} text not null
