-- PostgreSQL lets everybody run a new function; these are run by whom `rowferry init --grants` names.
revoke all on all functions in schema rowferry from public
