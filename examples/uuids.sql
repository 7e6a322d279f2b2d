/* examples/uuids.sql */

-- Tables whose keys are UUIDs get IDs of a shard, as docs/adopting.md describes.  Change the
-- names, and run it as the owner of the tables.

SELECT instaid.create_shard('store', 6);

BEGIN;
SET LOCAL lock_timeout = '5 s';
LOCK TABLE store.customers, store.orders IN ACCESS EXCLUSIVE MODE;
CREATE TEMP TABLE new_ids ON COMMIT DROP AS
SELECT uuid, instaid.make_id(timestamptz 'epoch' + (tick >> 10) * interval '1 ms', 6, tick) AS id
FROM (SELECT uuid, n + max(earliest - n) OVER (ORDER BY n) AS tick
      FROM (SELECT id AS uuid, floor(extract(epoch FROM GREATEST(
                       created_at, instaid.default_epoch())) * 1000)::bigint << 10 AS earliest,
                   row_number() OVER (ORDER BY created_at NULLS FIRST, id) AS n
            FROM (SELECT id, created_at FROM store.customers
                  UNION ALL SELECT id, created_at FROM store.orders) AS old) AS a) AS b;

ALTER TABLE store.customers RENAME id TO uuid;
ALTER TABLE store.customers ADD id bigint;
UPDATE store.customers AS c SET id = n.id FROM new_ids AS n WHERE n.uuid = c.uuid;

ALTER TABLE store.orders RENAME id TO uuid;
ALTER TABLE store.orders RENAME customer_id TO customer_uuid;
ALTER TABLE store.orders ADD id bigint, ADD customer_id bigint;
UPDATE store.orders AS o SET id = n.id, customer_id = c.id
FROM new_ids AS n, new_ids AS c WHERE n.uuid = o.uuid AND c.uuid = o.customer_uuid;

ALTER TABLE store.orders DROP CONSTRAINT orders_customer_id_fkey, DROP customer_uuid;
ALTER TABLE store.customers DROP CONSTRAINT customers_pkey, ADD PRIMARY KEY (id), ADD UNIQUE (uuid),
    ALTER id SET DEFAULT store.next_id();
ALTER TABLE store.orders DROP CONSTRAINT orders_pkey, ADD PRIMARY KEY (id), ADD UNIQUE (uuid),
    ALTER id SET DEFAULT store.next_id(), ALTER customer_id SET NOT NULL,
    ADD FOREIGN KEY (customer_id) REFERENCES store.customers;
SELECT instaid.advance_past('store.table_id_seq', max(id), instaid.default_epoch()) FROM new_ids;
COMMIT;
