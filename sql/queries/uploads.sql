-- Unfinished multipart uploads.

-- name: list_continued_uploads
-- The uploads that workers are at, or will go on with: their batch waits or is claimed, or they were worked on lately.
select
    key,
    upload_id
from rowferry.open_uploads
where will_continue or touched_at > clock_timestamp() - %(younger_than)s::interval;
