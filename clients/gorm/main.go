// GORM 1, which Debian has

package main

import (
	"fmt"

	"github.com/jinzhu/gorm"
	_ "github.com/jinzhu/gorm/dialects/postgres"
)

// recipe: model
type Album struct {
	ID    int64 `gorm:"primary_key;AUTO_INCREMENT:false;default:next_id()"`
	Title string
}

// end of recipe

// Photo is in the table that each trial starts with.
type Photo struct {
	ID      int64 `gorm:"primary_key;default:next_id()"`
	Caption string
}

func (Photo) TableName() string { return "insta5.photos" }

// recipe: shard
// inShard runs a function in a transaction that finds its tables in the shard.
func inShard(db *gorm.DB, shard string, run func(tx *gorm.DB) error) error {
	tx := db.Begin()
	defer tx.RollbackUnlessCommitted()
	if err := tx.Exec("SELECT set_config('search_path', ?, true)", shard).Error; err != nil {
		return err
	}
	if err := run(tx); err != nil {
		return err
	}
	return tx.Commit().Error
}

// end of recipe

// createTenant makes a shard with its tables, all or nothing.
// recipe: tenant
func createTenant(db *gorm.DB, number int) error {
	shard := fmt.Sprint("insta", number)
	return inShard(db, shard, func(tx *gorm.DB) error {
		if err := tx.Exec("SELECT instaid.create_shard(?, ?)", shard, number).Error; err != nil {
			return err
		}
		return tx.AutoMigrate(&Album{}).Error
	})
}

// end of recipe

func main() {
	options := ""
	if pooled {
		// a statement with parameters is otherwise two round trips
		options = "&binary_parameters=yes"
	}
	db, err := gorm.Open("postgres", connection("PGPORT", options))
	must(err)

	is("Create() reads the ID back", true, func() (any, error) {
		photo := Photo{Caption: "sunset"}
		err := db.Create(&photo).Error
		return areNewIds([]int64{photo.ID}, 1), err
	})
	is("an ID that a double would change", big, func() (any, error) {
		photo := Photo{}
		if err := db.Create(&Photo{ID: big}).Error; err != nil {
			return nil, err
		}
		err := db.First(&photo, "id = ?", big).Error
		return photo.ID, err
	})

	for _, number := range []int{6, 7} {
		must(createTenant(db, number))
	}
	for _, number := range []int{6, 7, 6} {
		is(fmt.Sprint("the tables of shard ", number, " take its IDs"), int64(number), func() (any, error) {
			album := Album{Title: "sunsets"}
			err := inShard(db, fmt.Sprint("insta", number), func(tx *gorm.DB) error {
				return tx.Create(&album).Error
			})
			return album.ID >> 10 & 8191, err
		})
	}
	is("AutoMigrate() changes nothing the second time", int64(2), func() (any, error) {
		var count int64
		err := inShard(db, "insta6", func(tx *gorm.DB) error {
			if err := tx.AutoMigrate(&Album{}).Error; err != nil {
				return err
			}
			return tx.Model(&Album{}).Count(&count).Error
		})
		return count, err
	})
	is("audit() finds nothing in the shards", int64(0), func() (any, error) {
		var count int64
		err := db.Raw("SELECT count(*) FROM instaid.audit() WHERE object ~ '^insta[67]'").Row().Scan(&count)
		return count, err
	})
	fails("a forgotten shard", `relation "albums" does not exist`, func() (any, error) {
		return nil, db.LogMode(false).Create(&Album{Title: "nobody's"}).Error
	})
	done()
}
