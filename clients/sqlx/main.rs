//! sqlx

use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgHasArrayType, PgPoolOptions, PgTypeInfo};
use sqlx::{Column, Row, TypeInfo};
use tap::{are_new_ids, Tap};

#[path = "../lib/tap.rs"]
mod tap;

const BIG: i64 = 4001511883701836730; // a double makes it 4001511883701836800

// recipe: newtype
/// instaid.id, whose 64 bits are those of a bigint
#[derive(Clone, Copy, Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "instaid.id")]
struct InstaId(i64);

impl PgHasArrayType for InstaId {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::array_of("instaid.id")
    }
}
// end of recipe

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // this reads PGHOST and its like
    let pool = PgPoolOptions::new().max_connections(2).connect_with(PgConnectOptions::new()).await?;
    let mut tap = Tap(0, 0);

    let new = sqlx::query_scalar("INSERT INTO insta5.photos (caption) VALUES ($1) RETURNING id").bind("a");
    tap.is("a default, by RETURNING, bigint", true, new.fetch_one(&pool).await.map(|id: i64| are_new_ids(&[id], 1)));
    let new = sqlx::query_scalar("INSERT INTO insta5.comments (body) VALUES ($1) RETURNING id").bind("a");
    let new = new.fetch_one(&pool).await.map(|id: InstaId| are_new_ids(&[id.0], 1));
    tap.is("a default, by RETURNING, instaid.id", true, new);

    let captions: Vec<String> = (0..2500).map(|i| format!("caption {}", i)).collect();
    let insert = "INSERT INTO insta5.photos (caption) SELECT unnest($1::text[]) RETURNING id";
    let ids: Vec<i64> = sqlx::query_scalar(insert).bind(&captions).fetch_all(&pool).await?;
    tap.is("many rows in one INSERT: IDs in order", true, Ok::<_, ()>(are_new_ids(&ids, 2500)));
    let query = "SELECT caption FROM insta5.photos WHERE id = ANY ($1) ORDER BY id";
    let found = sqlx::query_scalar(query).bind(&ids).fetch_all(&pool).await;
    tap.is("many rows in one INSERT: in the order of the rows", captions, found);

    let mut connection = pool.acquire().await?;
    let mut copy = connection.copy_in_raw("COPY insta5.photos (caption) FROM STDIN").await?;
    copy.send("copied\ncopied\n".as_bytes()).await?;
    let rows = copy.finish().await?;
    tap.is("COPY of rows", 2, Ok::<_, ()>(rows));
    let copied = "SELECT count(*) FROM insta5.photos WHERE caption = 'copied' AND instaid.extract_shard_id(id) = 5";
    tap.is("COPY, IDs made by the server", 2i64, sqlx::query_scalar(copied).fetch_one(&pool).await);
    let mut copy = connection.copy_in_raw("COPY insta5.photos (id) FROM STDIN").await?;
    copy.send(format!("{}\n", BIG).as_bytes()).await?;
    copy.finish().await?;
    let mut copy = connection.copy_in_raw("COPY insta5.comments (id, photo_id) FROM STDIN").await?;
    copy.send(format!("{}\t{}\n", BIG, BIG).as_bytes()).await?;
    copy.finish().await?;
    drop(connection);
    let brought = sqlx::query_scalar("SELECT photo_id FROM insta5.comments WHERE photo_id IS NOT NULL");
    tap.is("COPY, IDs brought along", InstaId(BIG), brought.fetch_one(&pool).await);

    for id in [BIG, i64::MAX, i64::MIN, 1] {
        let read = sqlx::query_scalar("SELECT $1::bigint").bind(id).fetch_one(&pool).await;
        tap.is(&format!("64 bits, bigint: {}", id), id, read);
        let id = InstaId(id);
        let read = sqlx::query_scalar("SELECT $1::instaid.id").bind(id).fetch_one(&pool).await;
        tap.is(&format!("64 bits, {:?}", id), id, read);
    }
    for query in [
        "SELECT count(*) FROM insta5.photos WHERE id = $1 AND id = ANY ($2)",
        "SELECT count(*) FROM insta5.comments WHERE id = $1 AND id = ANY ($2)",
    ] {
        let count = sqlx::query_scalar(query).bind(BIG).bind(vec![BIG, 1]).fetch_one(&pool).await;
        tap.is(&format!("parameters of i64: {}", query), 1i64, count);
        let ids = vec![InstaId(BIG), InstaId(1)];
        let count = sqlx::query_scalar(query).bind(InstaId(BIG)).bind(ids).fetch_one(&pool).await;
        tap.is(&format!("parameters of InstaId: {}", query), 1i64, count);
    }
    let likers = vec![InstaId(BIG), InstaId(7)];
    let insert = sqlx::query_scalar("INSERT INTO insta5.comments (likers) VALUES ($1) RETURNING likers").bind(&likers);
    tap.is("an array column", likers.clone(), insert.fetch_one(&pool).await);
    let null = sqlx::query_scalar("SELECT NULL::instaid.id").fetch_one(&pool).await;
    tap.is("a null", None::<InstaId>, null);
    let refused = "Rust type `i64` (as SQL type `INT8`) is not compatible with SQL type `instaid.id`";
    tap.fails("read instaid.id as i64", refused, sqlx::query_scalar::<_, i64>("SELECT 1::instaid.id").fetch_one(&pool).await);
    let refused = "is not compatible with SQL type `INT8`";
    tap.fails("read bigint as InstaId", refused, sqlx::query_scalar::<_, InstaId>("SELECT 1::bigint").fetch_one(&pool).await);
    let cast = sqlx::query_scalar("SELECT id::bigint FROM insta5.comments WHERE id = $1").bind(BIG);
    tap.is("read instaid.id as i64 with a cast", BIG, cast.fetch_one(&pool).await);
    let insert = sqlx::query("INSERT INTO insta5.comments (id) VALUES ($1)").bind(5i64).execute(&pool).await;
    tap.is("an i64 in an INSERT", 1, insert.map(|done| done.rows_affected()));

    let mut undo = pool.begin().await?;
    let insert = sqlx::query_scalar("INSERT INTO insta5.photos DEFAULT VALUES RETURNING id");
    let id: i64 = insert.fetch_one(&mut *undo).await?;
    undo.rollback().await?;
    let count = sqlx::query_scalar("SELECT count(*) FROM insta5.photos WHERE id = $1").bind(id);
    tap.is("a transaction that rolls back", 0i64, count.fetch_one(&pool).await);

    // a statement is prepared once for a connection, and kept
    let mut transaction = pool.begin().await?;
    let find = "SELECT id FROM insta5.comments WHERE id = $1";
    let mut found = Vec::new();
    for _ in 0..20 {
        found.push(sqlx::query_scalar(find).bind(InstaId(BIG)).fetch_one(&mut *transaction).await?);
    }
    tap.is("a prepared statement, twenty times", vec![InstaId(BIG); 20], Ok::<_, ()>(found));
    let runs = "SELECT generic_plans + custom_plans FROM pg_prepared_statements WHERE statement = $1";
    tap.is("one statement in the server", 20i64, sqlx::query_scalar(runs).bind(find).fetch_one(&mut *transaction).await);
    let row = sqlx::query("SELECT id, likers FROM insta5.comments LIMIT 1").fetch_one(&mut *transaction).await?;
    let types: Vec<String> = row.columns().iter().map(|column| column.type_info().name().to_string()).collect();
    tap.is("the types of columns", vec!["instaid.id".to_string(), "instaid.id[]".to_string()], Ok::<_, ()>(types));
    transaction.commit().await?;

    let mut migrator = Migrator::new(std::path::Path::new("migrations")).await?;
    migrator.set_locking(false); // through a pooler of transactions
    migrator.run(&pool).await?;
    migrator.run(&pool).await?;
    let insert = sqlx::query_scalar("INSERT INTO insta5.albums DEFAULT VALUES RETURNING id");
    let new = insert.fetch_one(&pool).await.map(|id: i64| are_new_ids(&[id], 1));
    tap.is("a table of a migration", true, new);

    println!("1..{}", tap.0);
    std::process::exit((tap.1 > 0) as i32)
}
