-- Sequences that issue IDs of instaid are no tickets.  instaid_tickets does not need instaid: it looks
-- at what depends on the sequence.
CREATE EXTENSION instaid;
SELECT instaid.create_shard('regress_shard', 5);
CREATE SEQUENCE regress_shard.own;
CREATE TABLE regress_shard.own_ids (id bigint DEFAULT regress_shard.next_id('regress_shard.own'));
CREATE SEQUENCE regress_shard.lone;
CREATE TABLE regress_shard.lone_ids (id bigint DEFAULT instaid.next_id('regress_shard.lone', 7));
-- each function refuses them; a frozen shard is not thawed by a hint
SELECT instaid.freeze_shard('regress_shard');
SELECT instaid_tickets.next('regress_shard.table_id_seq');
SELECT * FROM instaid_tickets.lease('regress_shard.own', 10);
SELECT instaid_tickets.next('regress_shard.lone');
\set VERBOSITY terse
SELECT instaid_tickets.guard('regress_shard.own', 10);
SELECT instaid_tickets.restripe('regress_shard.table_id_seq', 1, 2, 10);
\set VERBOSITY default
-- they are not listed, unless a default uses one; then they are a finding
SELECT instaid.thaw_shard('regress_shard');
SELECT regress_shard.next_id() > 0 AS id, count(*) FROM instaid_tickets.tickets;
CREATE TABLE regress_shard.wrong (id bigint DEFAULT instaid_tickets.next('regress_shard.table_id_seq'));
SELECT ticket, last_value, fault FROM instaid_tickets.tickets;
SELECT * FROM instaid_tickets.audit();
DROP TABLE regress_shard.wrong;
-- what a role creates says nothing about the sequences of others
CREATE ROLE regress_ids_mallory;
CREATE SEQUENCE public.victims;
CREATE SCHEMA regress_mallory AUTHORIZATION regress_ids_mallory;
SET ROLE regress_ids_mallory;
SELECT instaid.create_shard('regress_mallory', 6);
CREATE TABLE regress_mallory.planted (id bigint DEFAULT regress_mallory.next_id('public.victims'));
RESET ROLE;
SELECT instaid_tickets.next('public.victims');
-- without instaid, its sequences are sequences
SET client_min_messages = warning;
DROP SCHEMA regress_mallory CASCADE;
DROP EXTENSION instaid CASCADE;
SELECT instaid_tickets.next('regress_shard.own') > 0 AS value;
DROP SCHEMA regress_shard CASCADE;
DROP SEQUENCE public.victims;
DROP ROLE regress_ids_mallory;
