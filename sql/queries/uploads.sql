-- Unfinished multipart uploads.

-- name: list_known_uploads
-- The uploads that workers have recorded. `is_continued`: they are at it, or will go on with it: its batch waits or is
-- claimed, or it was worked on lately.
select
    key,
    upload_id,
    will_continue or touched_at > clock_timestamp() - %(younger_than)s::interval as is_continued
from rowferry.open_uploads;
