"""What tests stand on: servers, worlds, doubles and readers, a package for each kind."""
