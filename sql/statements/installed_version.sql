select version from rowferry.installation
