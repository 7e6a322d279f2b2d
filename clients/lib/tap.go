// TAP for trials in Go

package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
)

const big int64 = 4001511883701836730 // a double makes it 4001511883701836800

var pooled = os.Getenv("VIA") == "pgbouncer"
var number, failed int

// connection returns the URL of the database.
func connection(port string, options string) string {
	return fmt.Sprintf("postgres://%s:%s@%s:%s/%s?sslmode=disable%s", os.Getenv("PGUSER"), os.Getenv("PGPASSWORD"),
		os.Getenv("PGHOST"), os.Getenv(port), os.Getenv("PGDATABASE"), options)
}

// is tests that the function returns the expected value.
func is(name string, expected any, function func() (any, error)) {
	got, err := function()
	report(name, err == nil && reflect.DeepEqual(got, expected), got, err)
}

// fails tests that what is known not to work fails with this message.
func fails(name string, message string, function func() (any, error)) {
	got, err := function()
	report("known: "+name+": "+message, err != nil && strings.Contains(err.Error(), message), got, err)
}

func report(name string, ok bool, got any, err error) {
	number++
	if ok {
		fmt.Printf("ok %d - %s\n", number, name)
	} else {
		failed++
		fmt.Printf("not ok %d - %s\n# got %T %v, error %v\n", number, name, got, got, err)
	}
}

// areNewIds tells whether these are so many IDs of shard 5, in order.
func areNewIds(ids []int64, count int) bool {
	for i, id := range ids {
		if id < 1<<60 || id>>10&8191 != 5 || i > 0 && id <= ids[i-1] {
			return false
		}
	}
	return len(ids) == count
}

// captions returns some captions.
func captions(count int) (all []string) {
	for i := 0; i < count; i++ {
		all = append(all, fmt.Sprint("caption ", i))
	}
	return
}

// must ends the trial if there is an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func done() {
	fmt.Printf("1..%d\n", number)
	if failed > 0 {
		os.Exit(1)
	}
}
