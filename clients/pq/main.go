// lib/pq

package main

import (
	"database/sql"
	"fmt"
	"math"
	"strings"

	"github.com/lib/pq"
)

var db *sql.DB

// value returns the first column of the first row.
func value[T any](query string, parameters ...any) (any, error) {
	var v T
	err := db.QueryRow(query, parameters...).Scan(&v)
	return v, err
}

// insertPhotos inserts a photo for each caption, and returns their IDs in the order of the captions.
func insertPhotos(db *sql.DB, captions []string) (ids []int64, err error) {
	// recipe: bulk
	rows, err := db.Query(`INSERT INTO insta5.photos (caption)
		SELECT unnest($1::text[]) RETURNING id`, pq.Array(captions))
	// end of recipe
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err = rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// copyIn sends one row to a table by COPY.
func copyIn(table string, columns []string, row ...any) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// recipe: copy
	copy, err := tx.Prepare(pq.CopyInSchema("insta5", table, columns...))
	// end of recipe
	if err != nil {
		return err
	}
	if _, err = copy.Exec(row...); err != nil {
		return err
	}
	if _, err = copy.Exec(); err != nil {
		return err
	}
	if err = copy.Close(); err != nil {
		return err
	}
	return tx.Commit()
}

func main() {
	options := ""
	if pooled {
		// a statement with parameters is otherwise two round trips
		options = "&binary_parameters=yes"
	}
	var err error
	db, err = sql.Open("postgres", connection("PGPORT", options))
	must(err)

	for _, table := range []string{"photos", "comments"} {
		is("a default, by RETURNING, "+table, true, func() (any, error) {
			id, err := value[int64]("INSERT INTO insta5." + table + " DEFAULT VALUES RETURNING id")
			return areNewIds([]int64{id.(int64)}, 1), err
		})
	}
	fails("LastInsertId()", "LastInsertId is not supported", func() (any, error) {
		result, err := db.Exec("INSERT INTO insta5.photos DEFAULT VALUES")
		must(err)
		return result.LastInsertId()
	})
	is("many rows in one INSERT, in order", true, func() (any, error) {
		ids, err := insertPhotos(db, captions(2500))
		must(err)
		found, err := value[string](
			`SELECT string_agg(caption, ',' ORDER BY id) FROM insta5.photos WHERE caption LIKE 'caption %'`)
		return areNewIds(ids, 2500) && found == strings.Join(captions(2500), ","), err
	})
	is("COPY, IDs made by the server", int64(5), func() (any, error) {
		must(copyIn("photos", []string{"caption"}, "copied"))
		return value[int64]("SELECT instaid.extract_shard_id(id) FROM insta5.photos WHERE caption = 'copied'")
	})
	is("COPY, IDs brought along", big, func() (any, error) {
		must(copyIn("photos", []string{"id"}, big))
		must(copyIn("comments", []string{"id", "photo_id"}, big, big))
		return value[int64]("SELECT photo_id FROM insta5.comments WHERE photo_id IS NOT NULL")
	})

	for _, kind := range []string{"bigint", "instaid.id"} {
		for _, id := range []int64{big, math.MaxInt64, math.MinInt64, 1} {
			is(fmt.Sprint("64 bits, ", kind, ": ", id), id, func() (any, error) { return value[int64]("SELECT $1::"+kind, id) })
		}
		is("a string, "+kind, fmt.Sprint(big), func() (any, error) { return value[string]("SELECT $1::"+kind, fmt.Sprint(big)) })
		is("an array, "+kind, pq.Int64Array{big, 7},
			func() (any, error) { return value[pq.Int64Array]("SELECT $1::"+kind+"[]", pq.Array([]int64{big, 7})) })
	}
	is("bigint read as any", big, func() (any, error) { return value[any]("SELECT $1::bigint", big) })
	is("instaid.id read as any is a []byte", []byte(fmt.Sprint(big)),
		func() (any, error) { return value[any]("SELECT $1::instaid.id", big) })
	for _, table := range []string{"photos", "comments"} {
		for _, id := range []any{big, fmt.Sprint(big)} {
			is(fmt.Sprintf("a parameter of type %T, and an array, %s", id, table), int64(1), func() (any, error) {
				return value[int64]("SELECT count(*) FROM insta5."+table+" WHERE id = $1 AND id = ANY ($2)", id, pq.Array([]int64{big, 1}))
			})
		}
	}
	is("an array column", int64(1), func() (any, error) {
		result, err := db.Exec("INSERT INTO insta5.comments (id, likers) VALUES ($1, $2)", 5, pq.Array([]int64{big}))
		must(err)
		return result.RowsAffected()
	})
	is("the types of columns", "INT8 and ", func() (any, error) {
		rows, err := db.Query("SELECT p.id, c.id FROM insta5.photos p JOIN insta5.comments c USING (id)")
		must(err)
		defer rows.Close()
		types, err := rows.ColumnTypes()
		return types[0].DatabaseTypeName() + " and " + types[1].DatabaseTypeName(), err
	})

	is("a transaction that rolls back", int64(0), func() (any, error) {
		tx, err := db.Begin()
		must(err)
		var id int64
		must(tx.QueryRow("INSERT INTO insta5.photos DEFAULT VALUES RETURNING id").Scan(&id))
		must(tx.Rollback())
		return value[int64]("SELECT count(*) FROM insta5.photos WHERE id = $1", id)
	})
	is("a prepared statement, twenty times", big, func() (any, error) {
		// pgbouncer before 1.21 knows prepared statements within a transaction only
		tx, err := db.Begin()
		must(err)
		defer tx.Rollback()
		find, err := tx.Prepare("SELECT id FROM insta5.comments WHERE id = $1")
		must(err)
		var id int64
		for i := 0; i < 20; i++ {
			must(find.QueryRow(big).Scan(&id))
		}
		return id, nil
	})
	done()
}
