select * from rowferry.{function}({arguments})
