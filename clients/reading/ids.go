// reads IDs and shortcodes as the trial sends them
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// the functions, to copy from here
const epoch = 1314220021721
const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func createdAt(id int64) time.Time { return time.UnixMilli(id>>23 + epoch) }
func shard(id int64) int64         { return id >> 10 & 8191 }
func sequence(id int64) int64      { return id & 1023 }
func minID(time time.Time) int64   { return (time.UnixMilli() - epoch) << 23 }

func toShortcode(id int64) string {
	if id > 63 {
		return toShortcode(id>>6) + toShortcode(id&63)
	}
	return string(digits[id&63])
}

func fromShortcode(text string) (id int64, err error) {
	for _, digit := range text {
		id = id<<6 | int64(strings.IndexRune(digits, digit))
	}
	if toShortcode(id) != text {
		err = fmt.Errorf("%q is not a shortcode", text)
	}
	return id, err
}

// to here

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		id, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			id, err = fromShortcode(lines.Text())
		}
		if err != nil {
			fmt.Println("refused")
			continue
		}
		fmt.Println(id, createdAt(id).UnixMilli(), shard(id), sequence(id), minID(createdAt(id)), toShortcode(id))
	}
}
