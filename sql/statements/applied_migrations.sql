select number from rowferry.schema_migration order by number
