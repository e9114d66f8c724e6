insert into rowferry.schema_migration (number, name, applied_by)
values (%(number)s, %(name)s, %(applied_by)s)
