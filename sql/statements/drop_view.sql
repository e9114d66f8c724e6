drop view rowferry.{view} cascade
