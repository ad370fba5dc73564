-- ?1 before which time, ?2 how many of the newest stay: before which time rows may go.
SELECT CASE WHEN ?2 = 0 THEN ?1 ELSE min(?1, (
    SELECT processed_at FROM inbox_message ORDER BY processed_at DESC LIMIT 1 OFFSET max(?2 - 1, 0)
)) END
