---- Positions and metrics ----

-- include common/positions.sql

-- How far load and a crash can take a sequence ahead of the clock.
CREATE FUNCTION instaid._drift_limit() RETURNS interval
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_drift_limit';

-- include common/metrics.sql
