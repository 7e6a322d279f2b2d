// What differs between versions of pgx

package main

import (
	"context"

	"github.com/jackc/pgtype"
	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

// registerIds makes instaid.id an int64.
// recipe: register
func registerIds(ctx context.Context, conn *pgx.Conn) error {
	var id, array uint32
	err := conn.QueryRow(ctx, "SELECT 'instaid.id'::regtype::oid, 'instaid.id[]'::regtype::oid").Scan(&id, &array)
	conn.ConnInfo().RegisterDataType(pgtype.DataType{Value: &pgtype.Int8{}, Name: "instaid.id", OID: id})
	conn.ConnInfo().RegisterDataType(pgtype.DataType{Value: &pgtype.Int8Array{}, Name: "instaid.id[]", OID: array})
	return err
}

// end of recipe

// connect returns a pool of connections, in which instaid.id is registered or not.
func connect(register bool) *pgxpool.Pool {
	config, err := pgxpool.ParseConfig(connection("PGPORT", ""))
	must(err)
	// pgbouncer before 1.21 does not know prepared statements
	config.ConnConfig.PreferSimpleProtocol = pooled
	if register {
		// recipe: register
		config.AfterConnect = registerIds
		// end of recipe
	}
	pool, err := pgxpool.ConnectConfig(ctx, config)
	must(err)
	return pool
}

// notRegistered tests what pgx does not know of a type that it was not told.
func notRegistered(pool *pgxpool.Pool) {
	if !pooled {
		fails("not registered: read as int64", "cannot be scanned into *int64", func() (any, error) {
			return value[int64](pool, "SELECT id FROM insta5.comments WHERE id = $1", big)
		})
	}
	fails("not registered: CopyFrom", "Cannot encode int64 into oid", func() (any, error) {
		return pool.CopyFrom(ctx, pgx.Identifier{"insta5", "comments"}, []string{"id"}, pgx.CopyFromRows([][]any{{big - 1}}))
	})
}
