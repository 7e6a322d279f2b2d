-- Are all workers of subscriptions in use?
SELECT true FROM pg_stat_subscription
HAVING count(pid) >= current_setting('max_logical_replication_workers')::integer
