create role {role} nologin
