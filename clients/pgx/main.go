// pgx 4, and with other lines in connect.go pgx 5

package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

var ctx = context.Background()

// value returns the first column of the first row.
func value[T any](pool *pgxpool.Pool, query string, parameters ...any) (any, error) {
	var v T
	err := pool.QueryRow(ctx, query, parameters...).Scan(&v)
	return v, err
}

// values returns the first column.
func values(rows pgx.Rows, err error) (ids []int64) {
	must(err)
	defer rows.Close()
	for rows.Next() {
		var id int64
		must(rows.Scan(&id))
		ids = append(ids, id)
	}
	must(rows.Err())
	return
}

func main() {
	pool := connect(true)
	unregistered := connect(false)

	for _, table := range []string{"photos", "comments"} {
		is("a default, by RETURNING, "+table, true, func() (any, error) {
			return areNewIds(values(pool.Query(ctx, "INSERT INTO insta5."+table+" DEFAULT VALUES RETURNING id")), 1), nil
		})
	}
	is("many rows in one INSERT, in order", true, func() (any, error) {
		captions := captions(2500)
		// recipe: bulk
		rows, err := pool.Query(ctx, "INSERT INTO insta5.photos (caption) SELECT unnest($1::text[]) RETURNING id", captions)
		// end of recipe
		ids := values(rows, err)
		found, err := value[string](pool,
			`SELECT string_agg(caption, ',' ORDER BY id) FROM insta5.photos WHERE caption LIKE 'caption %'`)
		return areNewIds(ids, 2500) && found == strings.Join(captions, ","), err
	})
	is("a batch, in order", true, func() (any, error) {
		batch := &pgx.Batch{}
		for i := 0; i < 500; i++ {
			batch.Queue("INSERT INTO insta5.comments DEFAULT VALUES RETURNING id")
		}
		results := pool.SendBatch(ctx, batch)
		defer results.Close()
		var ids []int64
		for i := 0; i < 500; i++ {
			ids = append(ids, values(results.Query())...)
		}
		return areNewIds(ids, 500), nil
	})
	is("CopyFrom, IDs made by the server", true, func() (any, error) {
		_, err := pool.CopyFrom(ctx, pgx.Identifier{"insta5", "photos"}, []string{"caption"},
			pgx.CopyFromRows([][]any{{"copied"}, {"copied"}}))
		must(err)
		return areNewIds(values(pool.Query(ctx, "SELECT id FROM insta5.photos WHERE caption = 'copied' ORDER BY id")), 2), nil
	})
	is("CopyFrom, IDs brought along", big, func() (any, error) {
		_, err := pool.CopyFrom(ctx, pgx.Identifier{"insta5", "photos"}, []string{"id"}, pgx.CopyFromRows([][]any{{big}}))
		must(err)
		// recipe: bulk
		_, err = pool.CopyFrom(ctx, pgx.Identifier{"insta5", "comments"}, []string{"id", "photo_id"},
			pgx.CopyFromRows([][]any{{big, big}}))
		// end of recipe
		must(err)
		return value[int64](pool, "SELECT photo_id FROM insta5.comments WHERE photo_id IS NOT NULL")
	})

	for _, kind := range []string{"bigint", "instaid.id"} {
		for _, id := range []int64{big, math.MaxInt64, math.MinInt64, 1} {
			is(fmt.Sprint("64 bits, ", kind, ": ", id), id, func() (any, error) {
				return value[int64](pool, "SELECT CAST ($1 AS "+kind+")", id)
			})
		}
		is("an array, "+kind, []int64{big, 7}, func() (any, error) {
			return value[[]int64](pool, "SELECT $1::"+kind+"[]", []int64{big, 7})
		})
		is("read as any, "+kind, big, func() (any, error) { return value[any](pool, "SELECT $1::"+kind, big) })
	}
	for _, table := range []string{"photos", "comments"} {
		is("a parameter, and an array, "+table, int64(1), func() (any, error) {
			return value[int64](pool, "SELECT count(*) FROM insta5."+table+" WHERE id = $1 AND id = ANY ($2)", big, []int64{big, 1})
		})
	}
	is("an array column", []int64{big, 7}, func() (any, error) {
		return value[[]int64](pool, "INSERT INTO insta5.comments (likers) VALUES ($1) RETURNING likers", []int64{big, 7})
	})

	is("not registered: a parameter", big, func() (any, error) {
		return value[int64](unregistered, "SELECT p.id FROM insta5.photos p JOIN insta5.comments c USING (id) WHERE c.id = $1", big)
	})
	is("not registered: read as string", fmt.Sprint(big), func() (any, error) {
		return value[string](unregistered, "SELECT id FROM insta5.comments WHERE id = $1", big)
	})
	notRegistered(unregistered)

	is("a transaction that rolls back", int64(0), func() (any, error) {
		tx, err := pool.Begin(ctx)
		must(err)
		id := values(tx.Query(ctx, "INSERT INTO insta5.photos DEFAULT VALUES RETURNING id"))[0]
		must(tx.Rollback(ctx))
		return value[int64](pool, "SELECT count(*) FROM insta5.photos WHERE id = $1", id)
	})
	is("a prepared statement, twenty times", []any{big, !pooled}, func() (any, error) {
		tx, err := pool.Begin(ctx)
		must(err)
		defer tx.Rollback(ctx)
		var id int64
		for i := 0; i < 20; i++ {
			id = values(tx.Query(ctx, "SELECT id AS found FROM insta5.comments WHERE id = $1", big))[0]
		}
		var prepared bool
		err = tx.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_prepared_statements
			WHERE statement LIKE 'SELECT id AS found%'`).Scan(&prepared)
		return []any{id, prepared}, err
	})
	done()
}
