alter role {role} login password {password}
