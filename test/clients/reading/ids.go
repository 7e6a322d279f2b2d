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

// recipe: decoder
const epoch = 1314220021721
const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func decode(id int64) (created time.Time, shard, sequence int64) {
	return time.UnixMilli(id>>23 + epoch), id >> 10 & 8191, id & 1023
}

func minID(created time.Time) int64 {
	return (created.UnixMilli() - epoch) << 23
}

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

// end of recipe

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
		created, shard, sequence := decode(id)
		fmt.Println(id, created.UnixMilli(), shard, sequence, minID(created), toShortcode(id))
	}
}
