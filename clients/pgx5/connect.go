// What differs between versions of pgx

package main

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// registerIds makes instaid.id an int64.
// recipe: register
func registerIds(ctx context.Context, conn *pgx.Conn) error {
	var id, array uint32
	err := conn.QueryRow(ctx, "SELECT 'instaid.id'::regtype::oid, 'instaid.id[]'::regtype::oid").Scan(&id, &array)
	instaid := &pgtype.Type{Name: "instaid.id", OID: id, Codec: pgtype.Int8Codec{}}
	conn.TypeMap().RegisterType(instaid)
	conn.TypeMap().RegisterType(
		&pgtype.Type{Name: "instaid.id[]", OID: array, Codec: &pgtype.ArrayCodec{ElementType: instaid}})
	return err
}

// end of recipe

// connect returns a pool of connections, in which instaid.id is registered or not.
func connect(register bool) *pgxpool.Pool {
	config, err := pgxpool.ParseConfig(connection("PGPORT", ""))
	must(err)
	if pooled {
		// pgbouncer before 1.21 does not know prepared statements
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	}
	if register {
		// recipe: register
		config.AfterConnect = registerIds
		// end of recipe
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	must(err)
	return pool
}

// notRegistered tests what pgx does not know of a type that it was not told.
func notRegistered(pool *pgxpool.Pool) {
	is("not registered: read as int64", big, func() (any, error) {
		return value[int64](pool, "SELECT id FROM insta5.comments WHERE id = $1", big)
	})
	is("not registered: CopyFrom", int64(1), func() (any, error) {
		return pool.CopyFrom(ctx, pgx.Identifier{"insta5", "comments"}, []string{"id"}, pgx.CopyFromRows([][]any{{big - 1}}))
	})
}
