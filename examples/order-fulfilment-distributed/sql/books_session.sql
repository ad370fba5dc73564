-- The tables that books.sql reads, for this session alone. They hide those of the same names in the
-- database that the session happens to be in.
CREATE TEMPORARY TABLE ordering_orders (
    id text PRIMARY KEY, customer_id text, sku text, quantity bigint, total_cents bigint, status text, version bigint
);
CREATE TEMPORARY TABLE inventory_stock (sku text PRIMARY KEY, opening bigint, on_hand bigint);
CREATE TEMPORARY TABLE payment_accounts (customer_id text PRIMARY KEY, spent_cents bigint);
CREATE TEMPORARY TABLE outbox_message (id bigint, shard integer, message_id uuid PRIMARY KEY, event_type text, payload json);
CREATE TEMPORARY TABLE outbox_shard (shard integer PRIMARY KEY, position bigint);
CREATE TEMPORARY TABLE inbox_message (consumer text, message_id uuid);
